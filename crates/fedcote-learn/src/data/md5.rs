//! MD5 (RFC 1321), because that is what data sets publish. It guards against damage, not against malice.

/// The digest of these bytes, in lower-case hexadecimal.
///
/// ```
/// assert_eq!(fedcote_learn::data::md5::md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
/// ```
pub fn md5(bytes: &[u8]) -> String {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    // The sines of 1 to 64 radians make the table of the standard.
    let table: [u32; 64] =
        std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32);
    let whole = bytes.len() / 64 * 64;
    let mut tail = bytes[whole..].to_vec();
    tail.push(0x80);
    tail.resize((tail.len() + 8).next_multiple_of(64) - 8, 0);
    tail.extend((bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in bytes[..whole].chunks_exact(64).chain(tail.chunks_exact(64)) {
        absorb(&mut state, block, &table);
    }
    state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

fn absorb(state: &mut [u32; 4], block: &[u8], table: &[u32; 64]) {
    const TURNS: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| block[4 * i + byte]));
    let [mut a, mut b, mut c, mut d] = *state;
    for i in 0..64 {
        let (mixed, at) = match i / 16 {
            0 => ((b & c) | (!b & d), i),
            1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
            2 => (b ^ c ^ d, (3 * i + 5) % 16),
            _ => (c ^ (b | !d), 7 * i % 16),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(table[i]).wrapping_add(word(at));
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(TURNS[i / 16][i % 4])));
    }
    for (sum, value) in state.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::md5;

    /// The test suite of RFC 1321, and lengths around a block from coreutils.
    #[test]
    fn published_digests() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(md5(text.as_bytes()), digest);
        }
        assert_eq!(md5(&[b'x'; 55]), "04364420e25c512fd958a70738aa8f72");
        assert_eq!(md5(&[b'x'; 56]), "668a72d5ba17f08e62dabcafad6db14b");
        assert_eq!(md5(&[b'x'; 64]), "c1bb4f81d892b2d57947682aeb252456");
    }
}
