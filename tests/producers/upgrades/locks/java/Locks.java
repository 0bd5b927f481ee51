// A harbour's office: clerks book what ships owe in a ledger, pilots read and write a board, and couriers fill and empty
// a bag, each behind a lock (synchronized). Profiled by async-profiler, every wait for a lock. What is changed on side b
// of a pair:
//
//   held   the ledger is held for 10 ms instead of 1 ms
//   often  a clerk books four times a ship instead of once
//   two    the ledger has two halves, with a lock each
//
// Usage: java Locks a|held|often|two
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

class Locks {
    static final int CLERKS = 6, SHIPS = 40, PILOTS = 4, TIDES = 60, COURIERS = 3, WAYS = 80;

    static class Half {
        final Map<Integer, Integer> owed = new HashMap<>();
    }

    static class Ledger {
        private final Half[] halves;
        private final long held;

        Ledger(int count, long micros) {
            halves = new Half[count];
            for (int i = 0; i < count; i++) halves[i] = new Half();
            held = micros;
        }

        void book(int ship, int amount) {
            Half half = halves[ship % halves.length];
            synchronized (half) {
                half.owed.merge(ship, amount, Integer::sum);
                pause(held);
            }
        }

        int sum() {
            int sum = 0;
            for (Half half : halves) {
                synchronized (half) {
                    for (int amount : half.owed.values()) sum += amount;
                }
            }
            return sum;
        }
    }

    static class Board {
        private final Map<Integer, Integer> at = new HashMap<>();

        synchronized void post(int pilot, int ship) {
            at.put(pilot, ship);
            pause(500);
        }

        synchronized int look(int pilot) {
            pause(300);
            return at.getOrDefault(pilot, 0);
        }
    }

    static class Bag {
        private final ArrayDeque<Integer> letters = new ArrayDeque<>();

        synchronized void put(int letter) {
            letters.add(letter);
            pause(200);
        }

        synchronized int take() {
            pause(400);
            return letters.isEmpty() ? 0 : letters.pop();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        String change = args[0];
        Ledger ledger = new Ledger(change.equals("two") ? 2 : 1, change.equals("held") ? 10_000 : 1_000);
        int times = change.equals("often") ? 4 : 1;
        Board board = new Board();
        Bag bag = new Bag();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < CLERKS; i++) {
            int clerk = i;
            all.add(new Thread(() -> settle(ledger, clerk, times)));
        }
        for (int i = 0; i < PILOTS; i++) {
            int pilot = i;
            all.add(new Thread(() -> guide(board, pilot)));
        }
        for (int i = 0; i < COURIERS; i++) {
            int courier = i;
            all.add(new Thread(() -> carry(bag, courier)));
        }
        for (Thread thread : all) thread.start();
        for (Thread thread : all) thread.join();
        System.out.println(ledger.sum() + " owed");
    }

    static void settle(Ledger ledger, int clerk, int times) {
        for (int ship = 0; ship < SHIPS; ship++) {
            for (int part = 0; part < times; part++) ledger.book(ship * CLERKS + (clerk + part) % CLERKS, 100);
            if (ship % 10 == 9) ledger.sum();
        }
    }

    static void guide(Board board, int pilot) {
        for (int tide = 0; tide < TIDES; tide++) {
            board.post(pilot, tide);
            board.look((pilot + 1) % PILOTS);
        }
    }

    static void carry(Bag bag, int courier) {
        for (int way = 0; way < WAYS; way++) {
            bag.put(courier + way);
            bag.take();
        }
    }

    static void pause(long micros) {
        long until = System.nanoTime() + micros * 1000;
        for (long left = micros * 1000; left > 0; left = until - System.nanoTime()) LockSupport.parkNanos(left);
    }
}
