/** Writes tar archives (POSIX ustar). The same files give the same bytes. Pure. */

export interface TarFile {
  /** Without a leading slash, at most 255 bytes. A folder's ends in a slash. */
  readonly name: string
  readonly mode: number
  /** Of a symbolic link: where it leads. */
  readonly link?: string
  readonly uid?: number
  readonly gid?: number
  readonly modifiedS?: number
}

const BLOCK_BYTES = 512

/** The header of a file of this size. Throws RangeError for values that ustar cannot represent. */
export function tarHeader({ name, mode, link = '', uid = 0, gid = 0, modifiedS = 0 }: TarFile, size: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  const [prefix, rest] = splitName(name)
  const type = name.endsWith('/') ? '5' : link === '' ? '0' : '2'
  header.write(rest, 0)
  header.write(octal(mode, 8), 100)
  header.write(octal(uid, 8), 108)
  header.write(octal(gid, 8), 116)
  header.write(octal(size, 12), 124)
  header.write(octal(modifiedS, 12), 136)
  header.write(' '.repeat(8), 148)
  header.write(type, 156)
  if (Buffer.byteLength(link) > 100) throw new RangeError(`The link of ${JSON.stringify(name)} is too long for tar`)
  header.write(link, 157)
  header.write('ustar\u000000', 257)
  header.write(prefix, 345)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148)
  return header
}

/** As `tarHeader`, and for what ustar cannot say a pax header before it. */
export function tarHeaders(file: TarFile, size: number): Buffer {
  try {
    return tarHeader(file, size)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  const { name, link = '' } = file
  const folder = name.endsWith('/') ? '/' : ''
  const records = Buffer.concat([
    paxRecord('path', name),
    ...(link === '' ? [] : [paxRecord('linkpath', link)]),
    ...['uid', 'gid'].map((key) => paxRecord(key, String(file[key as 'uid' | 'gid'] ?? 0))),
    paxRecord('size', String(size)),
  ])
  const pax = tarHeader({ name: 'PaxHeaders.0/long', mode: 0o644 }, records.length)
  pax.write('x', 156)
  pax.write(' '.repeat(8), 148)
  const sum = pax.reduce((total, byte) => total + byte, 0)
  pax.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148)
  const small = { name: `long${folder}`, mode: file.mode, ...(link !== '' && { link: 'long' }) }
  const rest = { modifiedS: file.modifiedS ?? 0 }
  return Buffer.concat([
    pax,
    records,
    tarPadding(records.length),
    tarHeader({ ...small, ...rest }, Math.min(size, MAX_SIZE)),
  ])
}

/** The largest size that ustar can say. */
const MAX_SIZE = 8 ** 11 - 1

/** `LENGTH KEY=VALUE`, where the length counts itself. */
function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`
  const size = Buffer.byteLength(rest)
  let length = size + String(size).length
  if (size + String(length).length !== length) length = size + String(length).length
  return Buffer.from(`${length}${rest}`)
}

/** The padding after the content of a file of this size. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)
}

/** The end of the archive. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES)

/** A whole archive of small files. */
export function tarArchive(files: readonly (TarFile & { readonly content?: Uint8Array })[]): Buffer {
  const parts = files.flatMap(({ content = new Uint8Array(0), ...file }) => [
    tarHeader(file, content.length),
    content,
    tarPadding(content.length),
  ])
  return Buffer.concat([...parts, TAR_END])
}

function octal(value: number, width: number): string {
  const digits = value.toString(8).padStart(width - 1, '0')
  if (digits.length >= width) throw new RangeError(`${value} is too large for tar`)
  return `${digits}\u0000`
}

/** The name fits, or has a slash that parts it into pieces which do. */
function splitName(name: string): [prefix: string, rest: string] {
  if (Buffer.byteLength(name) <= 100) return ['', name]
  for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) {
    const [prefix, rest] = [name.slice(0, at), name.slice(at + 1)]
    if (rest !== '' && Buffer.byteLength(rest) <= 100 && Buffer.byteLength(prefix) <= 155) return [prefix, rest]
  }
  throw new RangeError(`The name ${JSON.stringify(name)} is too long for tar`)
}
