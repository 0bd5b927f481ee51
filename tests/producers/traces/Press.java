// A printing press for words, as press.c is: threads that compute, allocate sheets, wait for a lock, park and read; what it
// does depends on its argument, so that two runs differ. Usage: java Press ROUNDS
import java.io.FileInputStream;
import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;
import jdk.jfr.Recording;

public final class Press {
    private static final Object LOCK = new Object();
    private static final List<byte[]> KEPT = new ArrayList<>();
    private static volatile long checksum;

    private record Sheet(byte[] text, long seed) {}

    private static long mix(long sum, int letter) {
        for (int i = 0; i < 8; i++) sum = (sum ^ letter) * 1099511628211L + i;
        return sum;
    }

    private static long setLine(byte[] line, long seed) {
        for (int i = 0; i < line.length; i++) {
            seed = mix(seed, i);
            line[i] = (byte) ('a' + Math.floorMod(seed, 26));
        }
        return seed;
    }

    private static Sheet printSheet(int length) {
        byte[] text = new byte[length];
        long seed = setLine(text, length);
        Arrays.sort(text);
        return new Sheet(text, seed);
    }

    private static void fold(int depth) {
        if (depth > 0) {
            fold(depth - 1);
            checksum = mix(checksum, depth);
            return;
        }
        Sheet sheet = printSheet(2048);
        synchronized (LOCK) {
            KEPT.add(sheet.text());
            if (KEPT.size() > 1000) KEPT.clear();
            checksum += sheet.seed();
        }
    }

    private static void compute(int rounds, LongUnaryOperator step) {
        for (long i = 0; i < rounds * 400_000L; i++) checksum = step.applyAsLong(checksum);
    }

    private static void hold(int rounds) throws InterruptedException {
        for (int i = 0; i < rounds; i++) {
            synchronized (LOCK) {
                Thread.sleep(2);
            }
            LockSupport.parkNanos("press", 3_000_000);
        }
    }

    private static void read(int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            try (InputStream in = new FileInputStream("/dev/zero")) {
                checksum += in.readNBytes(4_000_000).length;
            }
        }
    }

    public static void main(String[] arguments) throws Throwable {
        int rounds = Integer.parseInt(arguments[0]);
        MethodHandle handle = MethodHandles.lookup()
            .findStatic(Press.class, "mix", MethodType.methodType(long.class, long.class, int.class));
        MethodHandle bound = MethodHandles.insertArguments(handle, 1, 7);
        List<Thread> threads = List.of(
            new Thread(() -> compute(rounds, sum -> mix(sum, 3)), "count"),
            new Thread(() -> {
                for (int i = 0; i < rounds * 300; i++) fold(20);
            }, "fold \"1\""),
            new Thread(() -> {
                for (int i = 0; i < rounds * 300; i++) fold(12);
            }, "fold é"),
            new Thread(() -> {
                try {
                    hold(rounds);
                    read(rounds);
                    for (long i = 0; i < rounds * 20_000L; i++) checksum = (long) bound.invokeExact(checksum);
                } catch (Throwable e) {
                    throw new AssertionError(e);
                }
            }, "hold"));
        for (Thread thread : threads) thread.start();
        // A recording beside the JVM's own has it begin a chunk, twice.
        Thread.sleep(500);
        try (Recording beside = new Recording()) {
            beside.start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(checksum);
    }
}
