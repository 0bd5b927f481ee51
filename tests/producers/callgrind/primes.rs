//! Plain loops, and recursion between two functions.
#[inline(never)]
fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0)
}

#[inline(never)]
fn ping(n: u64) -> u64 {
    if n == 0 { 0 } else { pong(n - 1) + u64::from(is_prime(n)) }
}

#[inline(never)]
fn pong(n: u64) -> u64 {
    if n == 0 { 1 } else { ping(n - 1) + n % 3 }
}

fn main() {
    let primes = (0..500).filter(|&n| is_prime(n)).count();
    println!("{primes} {}", ping(60));
}
