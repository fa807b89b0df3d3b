/**
 * Reads static pods from a manifest file, a directory or a URL, on changes and periodically. A failed read keeps the
 * previous pods.
 */
import { type FSWatcher, watch } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log/log.ts'

import { type ManifestSource, podsOf } from './manifest.ts'

export interface StaticSources {
  /** A file or a directory; '' for none. */
  readonly path?: string
  readonly checkMs?: number
  readonly url?: string
  readonly headers?: Readonly<Record<string, readonly string[]>>
  readonly urlCheckMs?: number
}

export interface SourceOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly nodeName: string
  readonly isEnabled: ManifestSource['isEnabled']
  /** Called with all pods of one source. */
  readonly found: (kind: ManifestSource['kind'], pods: readonly Pod[]) => void
}

const CHECK_MS = 20_000
/** Delay after a change, because editors write in several steps. */
const SETTLE_MS = 50
const MAX_BYTES = 10 << 20

/** Resolves when each file was read once. */
export async function startSources(sources: StaticSources, http: HttpClient, options: SourceOptions): Promise<void> {
  const { path = '', url = '', checkMs = CHECK_MS, urlCheckMs = CHECK_MS, headers = {} } = sources
  if (url !== '') void repeat(options, urlCheckMs, () => readUrl(http, { url, headers }, options))
  if (path === '') return
  const fileSource = new FileSource(path, options)
  await fileSource.read()
  void repeat(options, checkMs, () => fileSource.read())
  options.signal.addEventListener('abort', () => fileSource.close(), { once: true })
}

async function repeat({ clock, signal }: SourceOptions, periodMs: number, task: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await task()
    await sleep(clock, periodMs, signal, { background: true }).catch(() => undefined)
  }
}

class FileSource {
  readonly #path: string
  readonly #options: SourceOptions
  #watcher: FSWatcher | undefined
  #reading: Promise<void> | undefined
  #isStale = false

  constructor(path: string, options: SourceOptions) {
    this.#path = path
    this.#options = options
  }

  /** Never rejects: errors are logged. */
  async read(): Promise<void> {
    this.#isStale = true
    this.#reading ??= this.#readUntilCurrent().finally(() => (this.#reading = undefined))
    await this.#reading
  }

  close(): void {
    this.#watcher?.close()
  }

  async #readUntilCurrent(): Promise<void> {
    const { clock, signal, log } = this.#options
    while (this.#isStale && !signal.aborted) {
      this.#isStale = false
      this.#watch()
      try {
        this.#options.found('file', await clock.during(this.#read()))
      } catch (error) {
        log.error(error, 'Unable to read config path', { path: this.#path })
      }
    }
  }

  /** Without a watch the periodic read suffices. */
  #watch(): void {
    if (this.#watcher !== undefined) return
    const { clock } = this.#options
    const again = (): void => {
      this.#watcher?.close()
      this.#watcher = undefined
    }
    try {
      this.#watcher = watch(this.#path, { persistent: false }, () => {
        clock.after(SETTLE_MS, () => void this.read(), { background: true })
      })
      this.#watcher.on('error', again)
      this.#watcher.on('close', again)
    } catch {
      // The path does not exist yet.
    }
  }

  async #read(): Promise<Pod[]> {
    const found = await stat(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (found === undefined) return []
    if (found.isFile()) return this.#podsIn(this.#path)
    if (!found.isDirectory()) throw new Error('path is not a directory or file')
    const names = (await readdir(this.#path)).filter((name) => !name.startsWith('.')).sort()
    const pods: Pod[] = []
    for (const name of names) {
      const path = join(this.#path, name)
      try {
        pods.push(...(await this.#podsIn(path)))
      } catch (error) {
        this.#options.log.error(error, 'Could not process manifest file', { path })
      }
    }
    return pods
  }

  async #podsIn(path: string): Promise<Pod[]> {
    const { nodeName, isEnabled } = this.#options
    if ((await stat(path)).isDirectory()) throw new Error('a directory, not recursing into manifest path')
    return podsOf(await readFile(path, 'utf8'), { kind: 'file', where: path, nodeName, isEnabled })
  }
}

interface Address {
  readonly url: string
  readonly headers: Readonly<Record<string, readonly string[]>>
}

async function readUrl(http: HttpClient, { url, headers }: Address, options: SourceOptions): Promise<void> {
  const { log, nodeName, isEnabled, signal, found } = options
  try {
    const requestHeaders = Object.fromEntries(
      Object.entries(headers).map(([name, values]) => [name, values.join(', ')]),
    )
    const answer = await http.request({ url, headers: requestHeaders, signal })
    const text = await answer.text(MAX_BYTES)
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
    if (text === '') throw new Error(`zero-length data received from ${url}`)
    found('http', podsOf(text, { kind: 'http', where: url, nodeName, isEnabled }))
  } catch (error) {
    if (!signal.aborted) log.error(error, 'Failed to read pods from URL', { url })
  }
}
