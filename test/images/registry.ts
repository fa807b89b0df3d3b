/**
 * An image registry on the loopback for tests that must pull. It serves the archives of `docker-archive.ts` through the
 * pull part of the registry protocol.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface ImageRegistry extends AsyncDisposable {
  /** Without a path. */
  readonly url: string
  /** The user of each accepted request; '' for a request without credentials. */
  readonly users: readonly string[]
}

/** The user who may pull, and the authentication scheme. */
export interface Guard {
  readonly scheme: 'Basic' | 'Bearer'
  readonly username: string
  readonly password: string
}

/** Part of an archive, or a document made here. */
type Blob =
  | { readonly type: string; readonly file: string; readonly start: number; readonly size: number }
  | { readonly type: string; readonly bytes: Buffer }

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar'

/** The archives must stay where they are meanwhile. */
export async function startRegistry(archives: readonly string[], guard?: Guard): Promise<ImageRegistry> {
  const blobs = new Map<string, Blob>()
  const tags = new Map<string, string>()
  for (const archive of archives) await addArchive(archive, blobs, tags)
  const users: string[] = []
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://registry')
    if (guard !== undefined && !admits(guard, request, response)) return
    users.push(guard?.username ?? '')
    const [, repository, what, name] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(pathname) ?? []
    const digest = what === 'manifests' ? (tags.get(`${repository}:${name}`) ?? name) : name
    const blob = blobs.get(digest ?? '')
    if (pathname === '/v2/') response.end('{}')
    else if (blob === undefined) response.writeHead(404).end()
    else void send(response, digest ?? '', blob, request.method === 'HEAD').catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    users,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

/** The token for clients that have authenticated with a password, in the Bearer scheme. */
const TOKEN = 'a-token-of-the-registry'

/** Whether the request goes on; otherwise it has been answered, as registries do. */
function admits(guard: Guard, { url = '', headers }: IncomingMessage, response: ServerResponse): boolean {
  const { scheme, username, password } = guard
  const secret = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const isKnown = headers.authorization === secret
  if (url.startsWith('/token')) {
    if (isKnown) response.end(JSON.stringify({ token: TOKEN }))
    else response.writeHead(401).end(refusal('UNAUTHORIZED', 'authentication required'))
    return false
  }
  if (scheme === 'Basic' ? isKnown : headers.authorization === `Bearer ${TOKEN}`) return true
  const realm = scheme === 'Basic' ? 'realm="private"' : `realm="http://${headers.host}/token",service="private"`
  response.setHeader('www-authenticate', `${scheme} ${realm}`)
  response.writeHead(401).end(refusal('UNAUTHORIZED', 'authentication required'))
  return false
}

const refusal = (code: string, message: string): string => JSON.stringify({ errors: [{ code, message }] })

async function send(response: ServerResponse, digest: string, blob: Blob, isHead: boolean): Promise<void> {
  const size = 'bytes' in blob ? blob.bytes.length : blob.size
  response.writeHead(200, { 'content-type': blob.type, 'content-length': size, 'docker-content-digest': digest })
  if (isHead) response.end()
  else if ('bytes' in blob) response.end(blob.bytes)
  else await pipeline(createReadStream(blob.file, { start: blob.start, end: blob.start + size - 1 }), response)
}

async function addArchive(file: string, blobs: Map<string, Blob>, tags: Map<string, string>): Promise<void> {
  await using archive = await open(file)
  const entries = await entriesOf(archive)
  const read = async (name: string): Promise<Buffer> => {
    const { start = 0, size = 0 } = entries.get(name) ?? {}
    const { buffer } = await archive.read(Buffer.alloc(size), 0, size, start)
    return buffer
  }
  const images = JSON.parse(String(await read('manifest.json'))) as {
    readonly Config: string
    readonly RepoTags: readonly string[]
    readonly Layers: readonly string[]
  }[]
  for (const { Config, RepoTags, Layers } of images) {
    const config = document(CONFIG, await read(Config), blobs)
    const layers = Layers.map((name) => {
      const { start = 0, size = 0 } = entries.get(name) ?? {}
      const digest = `sha256:${name.replace(/\.tar$/, '')}`
      blobs.set(digest, { type: LAYER, file, start, size })
      return { mediaType: LAYER, digest, size }
    })
    const manifest = JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers })
    const { digest } = document(MANIFEST, Buffer.from(manifest), blobs)
    // Request paths contain no host.
    for (const tag of RepoTags) tags.set(tag.slice(tag.indexOf('/') + 1), digest)
  }
}

function document(type: string, bytes: Buffer, blobs: Map<string, Blob>): Descriptor {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  blobs.set(digest, { type, bytes })
  return { mediaType: type, digest, size: bytes.length }
}

const BLOCK = 512

/** Where in an archive each of its files is. Names have no more than 100 bytes in ours. */
async function entriesOf(archive: FileHandle): Promise<Map<string, { readonly start: number; readonly size: number }>> {
  const entries = new Map<string, { readonly start: number; readonly size: number }>()
  const header = Buffer.alloc(BLOCK)
  for (let at = 0; ;) {
    await archive.read(header, 0, BLOCK, at)
    const text = (from: number, to: number): string => header.toString('latin1', from, to).replace(/\0.*$/s, '')
    const name = text(0, 100)
    if (name === '') return entries
    const size = Number.parseInt(text(124, 136), 8)
    entries.set(name, { start: at + BLOCK, size })
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
  }
}
