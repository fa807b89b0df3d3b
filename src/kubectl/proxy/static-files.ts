/** Serves files of a directory like Go's file server: index pages, files and directory listings. */
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'

import type { Exchange } from '#lib/http/exchange.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.gif': 'image/gif',
  '.htm': 'text/html; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.xml': 'text/xml; charset=utf-8',
}

/** `path` is relative to the folder and normalized, but comes from a client. */
export async function serveFile(exchange: Exchange, folder: string, path: string): Promise<void> {
  const missing = (): void =>
    exchange.respond(404, ['Content-Type', 'text/plain; charset=utf-8'], '404 page not found\n')
  let name: string
  try {
    name = decodeURIComponent(path.split('?')[0] ?? '')
  } catch {
    return missing()
  }
  if (name.includes('\0') || name.split(/[/\\]/).includes('..')) return missing()
  const file = join(folder, name)
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return missing()
  if (!found.isDirectory()) return sendFile(exchange, file, found.size)
  const index = join(file, 'index.html')
  const page = await stat(index).catch(() => undefined)
  if (page?.isFile() === true) return sendFile(exchange, index, page.size)
  const names = await readdir(file, { withFileTypes: true })
  const lines = names
    .map((one) => (one.isDirectory() ? `${one.name}/` : one.name))
    .sort()
    .map((one) => `<a href="${encodeURI(one).replaceAll('#', '%23')}">${escaped(one)}</a>\n`)
  const text = `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join('')}</pre>\n`
  exchange.respond(200, ['Content-Type', 'text/html; charset=utf-8'], Buffer.from(text))
}

async function sendFile(exchange: Exchange, file: string, size: number): Promise<void> {
  const type = TYPES[extname(file).toLowerCase()] ?? 'application/octet-stream'
  const pieces =
    exchange.method === 'HEAD' || size === 0 ? [] : (createReadStream(file, { end: size - 1 }) as AsyncIterable<Buffer>)
  await exchange.respondPieces(200, ['Content-Type', type], { pieces, lengthBytes: size })
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&#34;')
}
