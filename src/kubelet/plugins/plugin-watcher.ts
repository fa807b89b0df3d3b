/**
 * Watches `plugins_registry` for sockets of plugins. A new socket is passed to the handler of its plugin type; a
 * removed socket is deregistered.
 */
import { type FSWatcher, watch } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { type PluginInfo, Registration } from '#apis/wire/plugin-registration.ts'
import { callText, messageText } from '#cri/call-text.ts'
import { type Backoff, createBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Logger } from '#lib/log/log.ts'
import { runPeriodically } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'

export interface PluginHandler {
  /** Throws the error that is returned to the plugin. */
  validate(plugin: PluginInfo): void
  /** The plugin is used once this resolves. */
  register(plugin: PluginInfo): Promise<void>
  deregister(plugin: PluginInfo): Promise<void>
}

export interface PluginWatcherOptions {
  /** `plugins_registry`; created if missing. */
  readonly dir: string
  /** By plugin type. */
  readonly handlers: Readonly<Record<string, PluginHandler>>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

const GET_INFO_MS = 1000
const CONNECT_MS = 10_000
const NOTIFY_MS = 5000
/** Interval of scans that find sockets missed by the file watch. */
const SCAN_MS = 5000
const RETRY = { baseMs: 500, factor: 2, capMs: 120_000, jitter: 0.1 }

/** A socket in the directory. A replaced socket is a new plugin. */
interface KnownSocket {
  readonly identity: string
  readonly backoff: Backoff
  dueMs: number
  /** Set once it is registered. */
  plugin: PluginInfo | undefined
}

export class PluginWatcher {
  readonly #options: PluginWatcherOptions
  readonly #known = new Map<string, KnownSocket>()
  #watcher: FSWatcher | undefined
  #scanning: Promise<void> | undefined
  #isStale = false

  constructor(options: PluginWatcherOptions) {
    this.#options = options
  }

  /** Resolves when existing plugins were queried once. */
  async start(): Promise<void> {
    const { dir, clock, log, signal } = this.#options
    await mkdir(dir, { recursive: true, mode: 0o750 })
    const onError = (error: unknown): void => log.error(error, 'Failed to scan for plugins', { dir })
    this.#watcher = watch(dir, { persistent: false }, () => void this.scan().catch(onError)).on('error', onError)
    const rounds = runPeriodically({ clock, periodMs: SCAN_MS, onError }, () => this.scan())
    signal.addEventListener('abort', () => {
      this.#watcher?.close()
      void rounds.stop()
    })
    await this.scan()
  }

  /** One scan at a time; a call meanwhile causes another scan. */
  scan(): Promise<void> {
    if (this.#scanning !== undefined) this.#isStale = true
    this.#scanning ??= this.#scanUntilCurrent().finally(() => {
      this.#scanning = undefined
    })
    return this.#scanning
  }

  async #scanUntilCurrent(): Promise<void> {
    do {
      this.#isStale = false
      await this.#scanOnce()
    } while (this.#isStale && !this.#options.signal.aborted)
  }

  async #scanOnce(): Promise<void> {
    const { dir, clock, random, signal } = this.#options
    if (signal.aborted) return
    const found = await clock.during(socketsIn(dir))
    for (const [path, known] of this.#known)
      if (found.get(path) !== known.identity) await this.#deregisterSocket(path, known)
    for (const [path, identity] of found) {
      if (!this.#known.has(path)) {
        this.#known.set(path, { identity, backoff: createBackoff(random, RETRY), dueMs: 0, plugin: undefined })
      }
    }
    const due = [...this.#known].filter(([, { plugin, dueMs }]) => plugin === undefined && dueMs <= clock.now())
    await Promise.all(due.map(([path, known]) => this.#registerSocket(path, known)))
  }

  async #deregisterSocket(path: string, { plugin }: KnownSocket): Promise<void> {
    this.#known.delete(path)
    if (plugin === undefined) return
    const { handlers, log } = this.#options
    await handlers[plugin.type]?.deregister(plugin).catch((error: unknown) => {
      log.error(error, 'DeRegisterPlugin failed', { plugin: plugin.name, path })
    })
  }

  async #registerSocket(path: string, known: KnownSocket): Promise<void> {
    const { clock, random, log, signal } = this.#options
    const client = createGrpcClient({ targets: [{ path }], clock, random, connectTimeoutMs: CONNECT_MS })
    try {
      known.plugin = await this.#register(client, path)
    } catch (error) {
      const waitMs = known.backoff.next()
      known.dueMs = clock.now() + waitMs
      if (signal.aborted) return
      clock.after(waitMs, () => void this.scan().catch(() => undefined), { background: true })
      log.error(error, 'RegisterPlugin failed', { path })
    } finally {
      client.close()
    }
  }

  async #register(client: GrpcClient, path: string): Promise<PluginInfo> {
    const notify = (pluginRegistered: boolean, error: string): Promise<object> =>
      client.unary(Registration.notifyRegistrationStatus, { pluginRegistered, error }, { timeoutMs: NOTIFY_MS })
    const refuse = async (text: string): Promise<never> => {
      await notify(false, text)
      throw new Error(text)
    }
    const info = await client.unary(Registration.getInfo, {}, { timeoutMs: GET_INFO_MS }).catch((error: unknown) => {
      const text = `failed to get plugin info using RPC GetInfo at socket ${path}, err: ${callText(error)}`
      throw new Error(`RegisterPlugin error -- ${text}`, { cause: error })
    })
    const plugin = { ...info, endpoint: info.endpoint === '' ? path : info.endpoint }
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
    await notify(true, '').catch(async (error: unknown) => {
      await handler.deregister(plugin)
      throw error
    })
    return plugin
  }
}

/** Sockets by path with an identity. Names that begin with a dot are ignored. */
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
