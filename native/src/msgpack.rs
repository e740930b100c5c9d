//! Reads and writes msgpack as far as requests and answers of short statements need it.
//!
//! What is written has the bytes that Python's packer writes: the shortest form of each value.

pub const EXT_DATE: u8 = 1;
pub const EXT_TIME: u8 = 2;
pub const EXT_TIMESTAMP: u8 = 3;
pub const EXT_TIMESTAMPTZ: u8 = 4;
pub const EXT_DECIMAL: u8 = 5;
pub const EXT_UUID: u8 = 6;
const EXT_HUGEINT: u8 = 8;

/// A value of a parameter; what no program takes is `Other`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    Int(i128),
    Text(&'a str),
    /// Days since 1970.
    Date(i64),
    /// Microseconds since 1970, without a zone.
    Timestamp(i64),
    Uuid(&'a [u8; 16]),
    Other,
}

/// Reads values one after the other; `None` where the bytes are something else than what is asked for.
pub struct Reader<'a> {
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Reader { data }
    }

    pub fn is_at_end(&self) -> bool {
        self.data.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        if count > self.data.len() {
            return None;
        }
        let (taken, rest) = self.data.split_at(count);
        self.data = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.number::<1>()?[0])
    }

    /// The length of a list, whose elements follow.
    pub fn array(&mut self) -> Option<usize> {
        match self.byte()? {
            code @ 0x90..=0x9f => Some(usize::from(code & 0x0f)),
            0xdc => Some(usize::from(u16::from_be_bytes(self.number()?))),
            _ => None,
        }
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let code = self.byte()?;
        self.text_of(code)
    }

    fn text_of(&mut self, code: u8) -> Option<&'a str> {
        let length = match code {
            0xa0..=0xbf => usize::from(code & 0x1f),
            0xd9 => usize::from(self.byte()?),
            0xda => usize::from(u16::from_be_bytes(self.number()?)),
            0xdb => u32::from_be_bytes(self.number()?) as usize,
            _ => return None,
        };
        std::str::from_utf8(self.take(length)?).ok()
    }

    pub fn int(&mut self) -> Option<i128> {
        let code = self.byte()?;
        self.int_of(code)
    }

    fn int_of(&mut self, code: u8) -> Option<i128> {
        Some(match code {
            0x00..=0x7f => i128::from(code),
            0xe0..=0xff => i128::from(code as i8),
            0xcc => i128::from(self.byte()?),
            0xcd => i128::from(u16::from_be_bytes(self.number()?)),
            0xce => i128::from(u32::from_be_bytes(self.number()?)),
            0xcf => i128::from(u64::from_be_bytes(self.number()?)),
            0xd0 => i128::from(self.byte()? as i8),
            0xd1 => i128::from(i16::from_be_bytes(self.number()?)),
            0xd2 => i128::from(i32::from_be_bytes(self.number()?)),
            0xd3 => i128::from(i64::from_be_bytes(self.number()?)),
            _ => return None,
        })
    }

    pub fn bool(&mut self) -> Option<bool> {
        match self.byte()? {
            0xc2 => Some(false),
            0xc3 => Some(true),
            _ => None,
        }
    }

    /// Whether nothing stands there, which is then skipped.
    pub fn skipped_nil(&mut self) -> bool {
        let is_nil = self.data.first() == Some(&0xc0);
        if is_nil {
            self.data = &self.data[1..];
        }
        is_nil
    }

    pub fn nil(&mut self) -> Option<()> {
        (self.byte()? == 0xc0).then_some(())
    }

    /// A parameter, were it one that no program takes; `None` if it is a list, a map or no value.
    pub fn param(&mut self) -> Option<Param<'a>> {
        let code = self.byte()?;
        Some(match code {
            0xa0..=0xbf | 0xd9..=0xdb => Param::Text(self.text_of(code)?),
            0x00..=0x7f | 0xe0..=0xff | 0xcc..=0xcf | 0xd0..=0xd3 => Param::Int(self.int_of(code)?),
            0xc0 | 0xc2 | 0xc3 => Param::Other,
            0xcb => {
                self.take(8)?;
                Param::Other
            }
            0xd7 => match (self.byte()?, i64::from_le_bytes(self.number()?)) {
                (EXT_DATE, days) => Param::Date(days),
                (EXT_TIMESTAMP, microseconds) => Param::Timestamp(microseconds),
                _ => Param::Other,
            },
            0xd8 => match (self.byte()?, self.take(16)?) {
                (EXT_UUID, bytes) => Param::Uuid(bytes.try_into().ok()?),
                _ => Param::Other,
            },
            _ => return None,
        })
    }
}

/// Bytes that are being written.
pub type Out = Vec<u8>;

pub fn write_nil(out: &mut Out) {
    out.push(0xc0);
}

pub fn write_bool(out: &mut Out, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

pub fn write_int(out: &mut Out, value: i128) {
    if let Ok(small) = u8::try_from(value) {
        if small > 0x7f {
            out.push(0xcc);
        }
        out.push(small);
    } else if let Ok(short) = u16::try_from(value) {
        out.push(0xcd);
        out.extend(short.to_be_bytes());
    } else if let Ok(word) = u32::try_from(value) {
        out.push(0xce);
        out.extend(word.to_be_bytes());
    } else if let Ok(long) = u64::try_from(value) {
        out.push(0xcf);
        out.extend(long.to_be_bytes());
    } else if let Ok(small) = i8::try_from(value) {
        if small < -32 {
            out.push(0xd0);
        }
        out.push(small as u8);
    } else if let Ok(short) = i16::try_from(value) {
        out.push(0xd1);
        out.extend(short.to_be_bytes());
    } else if let Ok(word) = i32::try_from(value) {
        out.push(0xd2);
        out.extend(word.to_be_bytes());
    } else if let Ok(long) = i64::try_from(value) {
        out.push(0xd3);
        out.extend(long.to_be_bytes());
    } else {
        let bits = 128 - value.unsigned_abs().leading_zeros() as usize;
        write_ext(out, EXT_HUGEINT, &value.to_le_bytes()[..bits / 8 + 1]);
    }
}

pub fn write_double(out: &mut Out, value: f64) {
    out.push(0xcb);
    out.extend(value.to_bits().to_be_bytes());
}

pub fn write_array(out: &mut Out, length: usize) -> Option<()> {
    if length < 16 {
        out.push(0x90 | length as u8);
    } else {
        out.push(0xdc);
        out.extend(u16::try_from(length).ok()?.to_be_bytes());
    }
    Some(())
}

/// Writes what stands before a text of so many bytes.
pub fn write_text_head(out: &mut Out, length: usize) -> Option<()> {
    match length {
        0..=31 => out.push(0xa0 | length as u8),
        32..=0xff => out.extend([0xd9, length as u8]),
        _ => {
            out.push(0xda);
            out.extend(u16::try_from(length).ok()?.to_be_bytes());
        }
    }
    Some(())
}

pub fn write_blob_head(out: &mut Out, length: usize) -> Option<()> {
    if let Ok(short) = u8::try_from(length) {
        out.extend([0xc4, short]);
    } else {
        out.push(0xc5);
        out.extend(u16::try_from(length).ok()?.to_be_bytes());
    }
    Some(())
}

/// Writes a value of an extension type.
pub fn write_ext(out: &mut Out, code: u8, content: &[u8]) {
    match content.len() {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        length => out.extend([0xc7, length as u8]), // no content here has more than 255 bytes
    }
    out.push(code);
    out.extend(content);
}
