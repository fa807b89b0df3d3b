/** `/logs/`: serves the log directory of the machine like Go's file server. It follows no link out of the directory. */
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, readdir, readlink, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'

import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import { pathOf } from '../volumes/safe-files.ts'
import { type Answer, textAnswer } from './answer.ts'

export interface LogDirectoryRequest {
  readonly exchange: Exchange
  /** The directory; `/var/log` on all machines. */
  readonly directory: string
  /** Decoded path segments below `/logs/`. */
  readonly segments: readonly string[]
  /** True if the path ends with a slash. */
  readonly isFolder: boolean
}

const NOT_FOUND: Answer = textAnswer(404, '404 page not found\n')
const FORBIDDEN: Answer = textAnswer(403, '403 Forbidden\n')
const INTERNAL: Answer = textAnswer(500, '500 Internal Server Error\n')

/** Undefined: the file was sent. */
export async function answerLogDirectory(request: LogDirectoryRequest): Promise<Answer | undefined> {
  const { directory, segments, isFolder } = request
  if (segments.some((segment) => segment === '..' || /[/\0]/.test(segment))) return NOT_FOUND
  const path = join(directory, ...segments)
  try {
    await using handle = await openWithin(directory, path)
    if (handle === undefined) return FORBIDDEN
    const found = await handle.stat()
    const base = encodeURIComponent(segments.at(-1) ?? 'logs')
    if (found.isDirectory()) return isFolder ? await listing(handle) : redirect(`${base}/`)
    if (!found.isFile()) return FORBIDDEN
    if (isFolder) return redirect(`../${base}`)
    await using file = await open(pathOf(handle), constants.O_RDONLY)
    return await sendFile(request.exchange, file, found)
  } catch (error) {
    if (request.exchange.isAnswered) throw error
    return faultOf(error as NodeJS.ErrnoException)
  }
}

function faultOf({ code = '' }: NodeJS.ErrnoException): Answer {
  if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'].includes(code)) return NOT_FOUND
  return code === 'EACCES' || code === 'EPERM' ? FORBIDDEN : INTERNAL
}

/** Opens without reading, so that pipes do not block and devices are not triggered. */
const O_PATH = 0o10000000

/**
 * Undefined: the path is outside the directory. The name of the opened file decides, so that a changed link has no
 * effect.
 */
async function openWithin(directory: string, path: string): Promise<FileHandle | undefined> {
  const handle = await open(path, O_PATH)
  try {
    const [root, real] = await Promise.all([realpath(directory), readlink(pathOf(handle))])
    if (real === root || real.startsWith(`${root}${sep}`)) return handle
  } catch (error) {
    await handle.close()
    throw error
  }
  await handle.close()
  return undefined
}

/** Relative, so that it works behind the API server's proxy. */
function redirect(location: string): Answer {
  return { status: 301, headers: ['Location', location], body: Buffer.alloc(0) }
}

const HTML: HeaderList = ['Content-Type', 'text/html; charset=utf-8']
const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' }

async function listing(handle: FileHandle): Promise<Answer> {
  const entries = await readdir(pathOf(handle), { withFileTypes: true })
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
  const lines = names.sort(byBytes).map((name) => `<a href="${hrefOf(name)}">${escaped(name)}</a>\n`)
  const head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n'
  return { status: 200, headers: HTML, body: Buffer.from(`${head}${lines.join('')}</pre>\n`) }
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? char)

/** A name before a colon would be parsed as a scheme. */
function hrefOf(name: string): string {
  const path = encodeURI(name).replaceAll(/[?#]/g, encodeURIComponent).replaceAll(/[']/g, '%27')
  return path.includes(':') ? `./${path}` : path
}

/** Number of bytes that decide the content type, as in Go. */
const SNIFF_BYTES = 512

/** Undefined: it was sent with its length at the start. A log may grow meanwhile. */
async function sendFile(exchange: Exchange, handle: FileHandle, { size, mtime }: Stats): Promise<Answer | undefined> {
  const headers = Object.entries({
    'Content-Type': await contentTypeOf(handle),
    'X-Content-Type-Options': 'nosniff',
    'Last-Modified': mtime.toUTCString(),
    'Accept-Ranges': 'bytes',
  }).flat()
  const range = rangeOf(exchange.headers.range, size)
  if (range === 'unsatisfiable') {
    const { status, body } = textAnswer(416, 'invalid range: failed to overlap\n')
    return { status, headers: ['Content-Type', 'text/plain; charset=utf-8', 'Content-Range', `bytes */${size}`], body }
  }
  const [start, end] = range ?? [0, size]
  const part = range === undefined ? [] : ['Content-Range', `bytes ${start}-${end - 1}/${size}`]
  const body = { pieces: piecesOf(handle, start, end), lengthBytes: end - start }
  await exchange.respondPieces(range === undefined ? 200 : 206, [...headers, ...part], body)
  return undefined
}

/** Text is always plain, so that a page written by a pod does not run in an administrator's browser. */
async function contentTypeOf(handle: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0)
  const head = buffer.subarray(0, bytesRead)
  if (head[0] === 0x1f && head[1] === 0x8b && head[2] === 0x08) return 'application/x-gzip'
  const isBinary = head.some((byte) => byte < 0x09 || byte === 0x0b || (byte > 0x0d && byte < 0x20 && byte !== 0x1b))
  return isBinary ? 'application/octet-stream' : 'text/plain; charset=utf-8'
}

type Range = readonly [start: number, end: number]

/** Undefined: the whole file, also for several ranges. */
function rangeOf(header: string | undefined, size: number): Range | 'unsatisfiable' | undefined {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === '' && to === '') return undefined
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const end = from === '' || to === '' ? size : Math.min(size, Number(to) + 1)
  return start < end ? [start, end] : 'unsatisfiable'
}

const PIECE_BYTES = 64 << 10

async function* piecesOf(handle: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at < end;) {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(PIECE_BYTES, end - at)), 0, undefined, at)
    if (bytesRead === 0) throw new Error('The log was truncated while it was sent')
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
