/**
 * Watches the tokens and users of the management server that this cluster stores. A cache file makes tokens usable
 * while the API server starts.
 */
import { readFile } from 'node:fs/promises'

import { type Secret, Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import type { Timer } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  AUTH_LABEL,
  AUTH_NAMESPACE,
  type ClusterAuthToken,
  ClusterAuthTokens,
  type ClusterUserAttribute,
  ClusterUserAttributes,
  hashIn,
} from './kinds.ts'
import {
  type AuthRecords,
  readRecords,
  type RecordLists,
  type TokenRecord,
  type UserRecord,
  writeRecords,
} from './records.ts'

export interface LiveRecordsOptions {
  readonly client: ApiClient
  /** Empty: none. */
  readonly cacheFile: string
  readonly random: Random
  readonly log: Logger
}

export interface LiveRecords extends AsyncDisposable {
  /** Undefined: the cluster has not been listed yet, and there is no file. */
  current(): AuthRecords | undefined
}

const MODE = 0o600
/** Related changes cause one write. */
const WRITE_DELAY_MS = 200
/** The API server is on this machine. */
const RETRY = { baseMs: 500, capMs: 5000, jitter: 1 }

export async function followRecords(options: LiveRecordsOptions): Promise<LiveRecords> {
  const { log } = options
  const stop = new AbortController()
  const cached = await readCache(options)
  const informers = createInformers(options)
  const running = Object.values(informers).map((informer: Informer<KubeObject>) => informer.run(stop.signal))
  const isSynced = (): boolean => Object.values(informers).every((informer) => informer.isSynced)
  const live = recordsOf(informers)
  const file = new CacheFile(options, () => writeRecords(listsOf(informers)))
  const changed = (): void => {
    if (isSynced()) file.writeSoon()
  }
  const listener = { added: changed, updated: changed, deleted: changed }
  for (const informer of Object.values(informers) as Informer<KubeObject>[]) informer.listen(listener)
  const start = async (): Promise<void> => {
    await Promise.all(Object.values(informers).map(({ synced }) => synced))
    log.info('Listed the tokens of the cluster', { tokens: informers.tokens.size })
    // Lists without objects call no listener.
    changed()
  }
  void start()
  return {
    current: () => (isSynced() ? live : cached),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all(running)
      await file.close()
    },
  }
}

interface AuthInformers {
  readonly tokens: Informer<ClusterAuthToken>
  readonly users: Informer<ClusterUserAttribute>
  readonly secrets: Informer<Secret>
}

function createInformers({ client, random, log }: LiveRecordsOptions): AuthInformers {
  const informer = <T extends KubeObject>(kind: Kind<T>, labelSelector = ''): Informer<T> =>
    new Informer<T>({
      client,
      kind,
      random,
      retry: RETRY,
      selection: { namespace: AUTH_NAMESPACE, ...(labelSelector !== '' && { labelSelector }) },
      onError: (error) => log.error(error, 'Failed to watch API tokens', { resource: kind.plural }),
    })
  return {
    tokens: informer(ClusterAuthTokens),
    users: informer(ClusterUserAttributes),
    secrets: informer(Secrets, `${AUTH_LABEL}=true`),
  }
}

function recordsOf({ tokens, users, secrets }: AuthInformers): AuthRecords {
  const key = (name: string): string => `${AUTH_NAMESPACE}/${name}`
  return {
    token: (name) => tokenRecord(tokens.get(key(name)), secrets.get(key(name))),
    user: (name) => userRecord(users.get(key(name))),
  }
}

function listsOf({ tokens, users, secrets }: AuthInformers): RecordLists {
  const all: RecordLists & { tokens: Map<string, TokenRecord>; users: Map<string, UserRecord> } = {
    tokens: new Map(),
    users: new Map(),
  }
  for (const token of tokens.list()) {
    const { name = '' } = token.metadata
    const record = tokenRecord(token, secrets.get(`${AUTH_NAMESPACE}/${name}`))
    if (record !== undefined) all.tokens.set(name, record)
  }
  for (const user of users.list()) {
    const record = userRecord(user)
    if (record !== undefined) all.users.set(user.metadata.name ?? '', record)
  }
  return all
}

function tokenRecord(token: ClusterAuthToken | undefined, secret: Secret | undefined): TokenRecord | undefined {
  const hash = hashIn(secret)
  if (token === undefined || hash === undefined || isEnding(token)) return undefined
  const { userName = '', enabled = false, expiresAt = '' } = token
  return { userName, enabled, expiresAt, hash }
}

function userRecord(user: ClusterUserAttribute | undefined): UserRecord | undefined {
  if (user === undefined || isEnding(user)) return undefined
  const { enabled = false, groups = [] } = user
  return { enabled, groups }
}

function isEnding({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined
}

/** Undefined: there is no file, or it cannot be read. */
async function readCache({ cacheFile, log }: LiveRecordsOptions): Promise<AuthRecords | undefined> {
  if (cacheFile === '') return undefined
  try {
    return readRecords(await readFile(cacheFile, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.error(error, 'Failed to read the cache file of API tokens', { path: cacheFile })
    return undefined
  }
}

/** Writes one after the other, and only what changed. */
class CacheFile {
  readonly #options: LiveRecordsOptions
  readonly #render: () => string
  #written = ''
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: LiveRecordsOptions, render: () => string) {
    this.#options = options
    this.#render = render
  }

  writeSoon(): void {
    if (this.#options.cacheFile === '' || this.#timer !== undefined) return
    this.#timer = this.#options.client.clock.after(WRITE_DELAY_MS, () => this.#start())
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#start()
    await this.#writing
  }

  #start(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write())
  }

  async #write(): Promise<void> {
    const { cacheFile, log } = this.#options
    const text = this.#render()
    if (text === this.#written) return
    try {
      await writeFileAtomically(cacheFile, text, { mode: MODE })
      this.#written = text
    } catch (error) {
      log.error(error, 'Failed to write the cache file of API tokens', { path: cacheFile })
    }
  }
}
