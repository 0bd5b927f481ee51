// Bakes for a town: reads orders, plans batches, kneads and bakes dough, prices what was baked and writes receipts. It
// does the same work in each run. Usage: java Bakery DAYS
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public final class Bakery {
    private static final String[] BREADS = {"rye", "spelt", "wheat", "oat", "barley", "corn", "millet"};
    private static final String[] STREETS = {"Mill Lane", "Bridge Road", "Church Street", "Station Way", "Harbour Row"};

    private record Order(String customer, String bread, int loaves, int grams) {}

    /** Numbers that look drawn, and are the same in each run. */
    private static final class Dice {
        private long state;

        Dice(long seed) {
            state = seed * 0x9E3779B97F4A7C15L | 1;
        }

        int below(int n) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            return (int) Long.remainderUnsigned(state, n);
        }
    }

    private static final class Book {
        private static String write(Dice dice, int orders) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < orders; i++) {
                String street = STREETS[dice.below(STREETS.length)];
                text.append(street).append(' ').append(dice.below(90)).append(';');
                text.append(BREADS[dice.below(BREADS.length)]).append(';');
                text.append(1 + dice.below(12)).append(';').append(400 + 50 * dice.below(20)).append('\n');
            }
            return text.toString();
        }

        private static List<Order> read(String text) {
            List<Order> orders = new ArrayList<>();
            for (int begin = 0; begin < text.length(); ) {
                int end = text.indexOf('\n', begin);
                orders.add(line(text.substring(begin, end)));
                begin = end + 1;
            }
            return orders;
        }

        private static Order line(String line) {
            int first = line.indexOf(';'), second = line.indexOf(';', first + 1), third = line.indexOf(';', second + 1);
            int loaves = number(line, second + 1, third), grams = number(line, third + 1, line.length());
            return new Order(line.substring(0, first), line.substring(first + 1, second), loaves, grams);
        }

        private static int number(String line, int begin, int end) {
            int value = 0;
            for (int i = begin; i < end; i++) value = 10 * value + line.charAt(i) - '0';
            return value;
        }
    }

    private static final class Plan {
        private static List<List<Order>> batches(List<Order> orders) {
            Map<String, List<Order>> byBread = new TreeMap<>();
            for (Order order : orders) byBread.computeIfAbsent(order.bread(), bread -> new ArrayList<>()).add(order);
            List<List<Order>> batches = new ArrayList<>();
            for (List<Order> same : byBread.values()) {
                same.sort((a, b) -> Integer.compare(a.grams(), b.grams()));
                for (int at = 0; at < same.size(); at += 24) {
                    batches.add(same.subList(at, Math.min(at + 24, same.size())));
                }
            }
            return batches;
        }
    }

    private static final class Dough {
        private final int[] gluten = new int[512];

        private void knead(int turns, int seed) {
            for (int turn = 0; turn < turns; turn++) {
                for (int i = 0; i < gluten.length; i++) {
                    int next = gluten[(i + 7) % gluten.length];
                    gluten[i] = gluten[i] * 31 + (next ^ seed + turn) + (gluten[i] >>> 5);
                }
            }
        }

        private double rise(int minutes) {
            double height = 1;
            for (int i = 0; i < minutes; i++) {
                height += Math.sqrt(height + (gluten[i % gluten.length] & 255)) / (1 + i);
            }
            return height;
        }
    }

    private static final class Oven {
        private final double[] bricks = new double[256];

        private double bake(double height, int loaves) {
            double crust = 0;
            for (int minute = 0; minute < 20 + loaves; minute++) {
                crust += glow(height);
            }
            return crust;
        }

        private double glow(double height) {
            double heat = 0;
            for (int i = 1; i < bricks.length - 1; i++) {
                bricks[i] = 0.98 * bricks[i] + 0.01 * (bricks[i - 1] + bricks[i + 1]) + 1 / (height + i);
                heat += bricks[i];
            }
            return heat;
        }
    }

    private static final class Till {
        private final Map<String, Integer> prices = new HashMap<>();

        private Till() {
            for (int i = 0; i < BREADS.length; i++) prices.put(BREADS[i], 180 + 35 * i);
        }

        private int price(Order order) {
            int cents = prices.get(order.bread()) * order.loaves() * order.grams() / 500;
            for (int step = 0; step < 40; step++) cents += discount(cents, step);
            return cents;
        }

        private static int discount(int cents, int step) {
            int rest = cents;
            while (rest > 97 + step) rest = rest / 3 + rest % 7;
            return rest & 1;
        }
    }

    private static final class Receipts {
        private final Map<String, StringBuilder> byCustomer = new HashMap<>();

        private void add(Order order, int cents, double crust) {
            StringBuilder text = byCustomer.computeIfAbsent(order.customer(), customer -> new StringBuilder());
            text.append(order.loaves()).append(" x ").append(order.bread()).append("  ");
            text.append(cents / 100).append('.').append(cents % 100).append("  ").append((int) crust).append('\n');
        }

        private long print() {
            long length = 0;
            String[] customers = byCustomer.keySet().toArray(new String[0]);
            Arrays.sort(customers);
            for (String customer : customers) length += customer.length() + byCustomer.get(customer).toString().length();
            return length;
        }
    }

    private static long day(int number) {
        Dice dice = new Dice(number);
        List<Order> orders = Book.read(Book.write(dice, 1500));
        Till till = new Till();
        Receipts receipts = new Receipts();
        Oven oven = new Oven();
        long sum = 0;
        for (List<Order> batch : Plan.batches(orders)) {
            Dough dough = new Dough();
            dough.knead(60, number);
            double height = dough.rise(2000);
            double crust = oven.bake(height, batch.size());
            for (Order order : batch) {
                int cents = till.price(order);
                receipts.add(order, cents, crust);
                sum += cents;
            }
        }
        return sum + receipts.print();
    }

    public static void main(String[] arguments) {
        int days = Integer.parseInt(arguments[0]);
        long sum = 0;
        for (int number = 1; number <= days; number++) sum += day(number);
        System.out.println(sum);
    }
}
