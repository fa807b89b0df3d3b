/**
 * Plugins come and go with their sockets in `plugins_registry`: one that appears is asked who it is and handed to whoever looks
 * after its kind, one that disappears is taken from them. What fails is tried again as long as the socket is there.
 */
import { type FSWatcher, watch } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { type Backoff, createBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'

import { callText, messageText } from '../cri/call-text.ts'
import { getInfo, notifyRegistrationStatus, type PluginInfo } from './registration.ts'

export interface PluginHandler {
  /** Throws what the plugin is told when it cannot be taken. */
  validate(plugin: PluginInfo): void
  /** From its end on the plugin is used. */
  register(plugin: PluginInfo): Promise<void>
  deregister(plugin: PluginInfo): Promise<void>
}

export interface PluginWatcherOptions {
  /** `plugins_registry`. Made when it is not there. */
  readonly dir: string
  /** By the type that plugins give. */
  readonly handlers: Readonly<Record<string, PluginHandler>>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

const GET_INFO_MS = 1000
const CONNECT_MS = 10_000
const NOTIFY_MS = 5000
/** What the kernel did not tell is found by looking. */
const LOOK_MS = 5000
const RETRY = { baseMs: 500, factor: 2, capMs: 120_000, jitter: 0.1 }

/** A socket in the folder. Another one under the same path is another plugin. */
interface Known {
  readonly identity: string
  readonly backoff: Backoff
  dueMs: number
  /** Once it is registered. */
  plugin: PluginInfo | undefined
}

export class PluginWatcher {
  readonly #options: PluginWatcherOptions
  readonly #known = new Map<string, Known>()
  #watcher: FSWatcher | undefined
  #looking: Promise<void> | undefined
  #isStale = false

  constructor(options: PluginWatcherOptions) {
    this.#options = options
  }

  /** Resolves when plugins that are there have been asked once. */
  async start(): Promise<void> {
    const { dir, clock, log, signal } = this.#options
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const onError = (error: unknown): void => log.error(error, 'Plugins could not be looked for', { dir })
    this.#watcher = watch(dir, { persistent: false }, () => void this.look().catch(onError)).on('error', onError)
    const rounds = startRounds({ clock, periodMs: LOOK_MS, onError }, () => this.look())
    signal.addEventListener('abort', () => {
      this.#watcher?.close()
      void rounds.stop()
    })
    await this.look()
  }

  /** One look at a time; whoever asks meanwhile gets another one after it. */
  look(): Promise<void> {
    if (this.#looking !== undefined) this.#isStale = true
    this.#looking ??= this.#lookUntilFresh().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookUntilFresh(): Promise<void> {
    do {
      this.#isStale = false
      await this.#lookOnce()
    } while (this.#isStale && !this.#options.signal.aborted)
  }

  async #lookOnce(): Promise<void> {
    const { dir, clock, random, signal } = this.#options
    if (signal.aborted) return
    const found = await clock.during(socketsIn(dir))
    for (const [path, known] of this.#known) if (found.get(path) !== known.identity) await this.#lose(path, known)
    for (const [path, identity] of found) {
      if (!this.#known.has(path)) {
        this.#known.set(path, { identity, backoff: createBackoff(random, RETRY), dueMs: 0, plugin: undefined })
      }
    }
    const due = [...this.#known].filter(([, { plugin, dueMs }]) => plugin === undefined && dueMs <= clock.now())
    await Promise.all(due.map(([path, known]) => this.#take(path, known)))
  }

  async #lose(path: string, { plugin }: Known): Promise<void> {
    this.#known.delete(path)
    if (plugin === undefined) return
    const { handlers, log } = this.#options
    await handlers[plugin.type]?.deregister(plugin).catch((error: unknown) => {
      log.error(error, 'DeRegisterPlugin failed', { plugin: plugin.name, path })
    })
  }

  async #take(path: string, known: Known): Promise<void> {
    const { clock, random, log, signal } = this.#options
    const client = createGrpcClient({ targets: [{ path }], clock, random, connectTimeoutMs: CONNECT_MS })
    try {
      known.plugin = await this.#register(client, path)
    } catch (error) {
      const waitMs = known.backoff.next()
      known.dueMs = clock.now() + waitMs
      if (signal.aborted) return
      clock.after(waitMs, () => void this.look().catch(() => undefined), { background: true })
      log.error(error, 'RegisterPlugin failed', { path })
    } finally {
      client.close()
    }
  }

  async #register(client: GrpcClient, path: string): Promise<PluginInfo> {
    const tell = (pluginRegistered: boolean, error: string): Promise<object> =>
      client.unary(notifyRegistrationStatus, { pluginRegistered, error }, { timeoutMs: NOTIFY_MS })
    const refuse = async (text: string): Promise<never> => {
      await tell(false, text)
      throw new Error(text)
    }
    const said = await client.unary(getInfo, {}, { timeoutMs: GET_INFO_MS }).catch((error: unknown) => {
      const text = `failed to get plugin info using RPC GetInfo at socket ${path}, err: ${callText(error)}`
      throw new Error(`RegisterPlugin error -- ${text}`, { cause: error })
    })
    const plugin = { ...said, endpoint: said.endpoint === '' ? path : said.endpoint }
    const handler = this.#options.handlers[plugin.type]
    if (handler === undefined) {
      const text = `no handler registered for plugin type: ${plugin.type} at socket ${path}`
      return refuse(`RegisterPlugin error -- ${text}`)
    }
    try {
      handler.validate(plugin)
    } catch (error) {
      return refuse(`RegisterPlugin error -- plugin validation failed with err: ${messageText(error)}`)
    }
    try {
      await handler.register(plugin)
    } catch (error) {
      return refuse(`RegisterPlugin error -- plugin registration failed with err: ${callText(error)}`)
    }
    await tell(true, '').catch(async (error: unknown) => {
      await handler.deregister(plugin)
      throw error
    })
    return plugin
  }
}

/** Sockets by path, each with what tells it from another of that name. Those whose names begin with a dot are not looked at. */
async function socketsIn(dir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(dir, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) for (const [below, identity] of await socketsIn(path)) found.set(below, identity)
    if (!entry.isSocket()) continue
    const { ino, ctimeNs } = await lstat(path, { bigint: true }).catch(() => ({ ino: 0n, ctimeNs: 0n }))
    if (ino !== 0n) found.set(path, `${ino} ${ctimeNs}`)
  }
  return found
}
