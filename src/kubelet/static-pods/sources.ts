/**
 * Where static pods come from: a file or a folder of files, looked at when something changes in it and now and then besides,
 * and an address that is asked again and again. What cannot be read leaves what was read before as it is.
 */
import { type FSWatcher, watch } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log.ts'

import { type ManifestSource, podsOf } from './manifest.ts'

export interface StaticSources {
  /** A file or a folder; '' for none. */
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
  /** All pods of one source. */
  readonly found: (kind: ManifestSource['kind'], pods: readonly Pod[]) => void
}

const CHECK_MS = 20_000
/** Editors write in several steps. */
const SETTLE_MS = 50
const MAX_BYTES = 10 << 20

/** Resolves when each file was looked at once. */
export async function startSources(sources: StaticSources, http: HttpClient, options: SourceOptions): Promise<void> {
  const { path = '', url = '', checkMs = CHECK_MS, urlCheckMs = CHECK_MS, headers = {} } = sources
  if (url !== '') void repeat(options, urlCheckMs, () => askUrl(http, { url, headers }, options))
  if (path === '') return
  const looker = new FileLooker(path, options)
  await looker.look()
  void repeat(options, checkMs, () => looker.look())
  options.signal.addEventListener('abort', () => looker.close(), { once: true })
}

async function repeat({ clock, signal }: SourceOptions, periodMs: number, task: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await task()
    await sleep(clock, periodMs, signal, { background: true }).catch(() => undefined)
  }
}

class FileLooker {
  readonly #path: string
  readonly #options: SourceOptions
  #watcher: FSWatcher | undefined
  #looking: Promise<void> | undefined
  #isStale = false

  constructor(path: string, options: SourceOptions) {
    this.#path = path
    this.#options = options
  }

  /** Never fails: what is wrong is said. */
  async look(): Promise<void> {
    this.#isStale = true
    this.#looking ??= this.#lookOften().finally(() => (this.#looking = undefined))
    await this.#looking
  }

  close(): void {
    this.#watcher?.close()
  }

  async #lookOften(): Promise<void> {
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

  /** Without it, looking now and then will do. */
  #watch(): void {
    if (this.#watcher !== undefined) return
    const { clock } = this.#options
    const again = (): void => {
      this.#watcher?.close()
      this.#watcher = undefined
    }
    try {
      this.#watcher = watch(this.#path, { persistent: false }, () => {
        clock.after(SETTLE_MS, () => void this.look(), { background: true })
      })
      this.#watcher.on('error', again)
      this.#watcher.on('close', again)
    } catch {
      // It is not there yet.
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

async function askUrl(http: HttpClient, { url, headers }: Address, options: SourceOptions): Promise<void> {
  const { log, nodeName, isEnabled, signal, found } = options
  try {
    const said = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, values.join(', ')]))
    const answer = await http.request({ url, headers: said, signal })
    const text = await answer.text(MAX_BYTES)
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
    if (text === '') throw new Error(`zero-length data received from ${url}`)
    found('http', podsOf(text, { kind: 'http', where: url, nodeName, isEnabled }))
  } catch (error) {
    if (!signal.aborted) log.error(error, 'Failed to read pods from URL', { url })
  }
}
