/**
 * Serves the built page of the web console below `/ui/`. Every path that is no file is index.html, whose script reads
 * the address.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import type { Random } from '#lib/random.ts'

import type { Encoding } from './accept-encoding.ts'
import { NOT_BUILT, sendNotice } from './notice.ts'
import { type PageFile, type PageFiles, PageFolder } from './page-files.ts'
import { pageHeaders, SAFE_HEADERS } from './page-headers.ts'
import { planPage, weakTag } from './page-plan.ts'

export interface ConsolePageOptions {
  readonly random: Random
  /** Default: the page of this package. */
  readonly folder?: URL | undefined
}

export interface ConsolePage {
  /** Responds to any request; resolves with the status. */
  serve(exchange: Exchange): Promise<number>
}

/** In index.html: the page gives its value to what adds style elements. */
const NONCE = '__NONCE__'
const NONCE_BYTES = 16
/** Compressing less does not make it smaller. */
const MIN_COMPRESSED_BYTES = 1024
const BROTLI_QUALITY = 4

export function createConsolePage({ random, folder }: ConsolePageOptions): ConsolePage {
  const pageFolder = new PageFolder(folder)
  return {
    async serve(exchange) {
      const files = await pageFolder.read()
      const plan = planPage(exchange, files)
      if (plan.send === 'redirect')
        return respond(exchange, 302, ['Location', plan.to, 'Cache-Control', 'no-store', ...SAFE_HEADERS])
      if (plan.send === 'refusal') return refuse(exchange, plan.status)
      if (plan.send === 'not-built' || files === undefined) return sendNotice(exchange, 503, NOT_BUILT)
      // Without the policy: the copy in the browser's cache keeps the one with its nonce.
      if (plan.send === 'unchanged') return respond(exchange, 304, [...cachingOf(files), ...SAFE_HEADERS])
      if (plan.send === 'index') return sendIndex(exchange, { files, encoding: plan.encoding, random })
      return sendFile(exchange, plan, pageFolder)
    },
  }
}

const REFUSALS = { 400: 'The path is not valid', 404: 'There is no such page', 405: 'The method is not supported' }

function refuse(exchange: Exchange, status: keyof typeof REFUSALS): number {
  const allowed = status === 405 ? ['Allow', 'GET, HEAD'] : []
  const type = ['Content-Type', 'text/plain; charset=utf-8', 'Cache-Control', 'no-store']
  return respond(exchange, status, [...type, ...allowed, ...SAFE_HEADERS], Buffer.from(`${REFUSALS[status]}\n`))
}

function respond(exchange: Exchange, status: number, headers: HeaderList, body?: Buffer): number {
  exchange.respond(status, headers, body)
  return status
}

function cachingOf({ indexTag }: PageFiles): HeaderList {
  return ['Cache-Control', 'no-cache', 'ETag', weakTag(indexTag), 'Vary', 'Accept-Encoding']
}

interface IndexParts {
  readonly files: PageFiles
  readonly encoding: Encoding
  readonly random: Random
}

async function sendIndex(exchange: Exchange, { files, encoding, random }: IndexParts): Promise<number> {
  const nonce = random.bytes(NONCE_BYTES).toString('base64url')
  const text = Buffer.from(files.index.replaceAll(NONCE, nonce))
  const used = text.length < MIN_COMPRESSED_BYTES ? 'identity' : encoding
  const type = ['Content-Type', 'text/html; charset=utf-8']
  const headers = [...type, ...cachingOf(files), ...encodingOf(used), ...pageHeaders(nonce)]
  return respond(exchange, 200, headers, await COMPRESS[used](text))
}

const COMPRESS: Readonly<Record<Encoding, (text: Buffer) => Buffer | Promise<Buffer>>> = {
  br: (text) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (text) => promisify(gzip)(text),
  identity: (text) => text,
}

function encodingOf(encoding: Encoding): HeaderList {
  return encoding === 'identity' ? [] : ['Content-Encoding', encoding]
}

interface FilePlan {
  readonly file: PageFile
  readonly encoding: Encoding
  readonly isImmutable: boolean
}

async function sendFile(
  exchange: Exchange,
  { file, encoding, isImmutable }: FilePlan,
  folder: PageFolder,
): Promise<number> {
  const opened = await open(folder.pathOf(file, encoding), 'r').catch(() => undefined)
  // The page is being built anew.
  if (opened === undefined) return refuse(exchange, 404)
  await using handle = opened
  const { size } = await handle.stat()
  const caching = isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache'
  const type = ['Content-Type', file.type, 'Vary', 'Accept-Encoding', 'Cache-Control', caching]
  const headers = [...type, ...encodingOf(encoding), ...SAFE_HEADERS]
  await exchange.respondPieces(200, headers, { pieces: piecesOf(handle, size), lengthBytes: size })
  return 200
}

const PIECE_BYTES = 64 << 10

async function* piecesOf(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < size;) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - at)), {
      position: at,
    })
    if (bytesRead === 0) throw new Error('A file of the console became shorter while it was read')
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}
