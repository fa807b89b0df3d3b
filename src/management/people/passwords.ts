/**
 * Hashes and verifies passwords with argon2id (OWASP's minimum cost), in PHC format. At most two hashes are computed
 * concurrently, because each takes 19 MiB and 50 ms of a core.
 */
import { argon2, timingSafeEqual } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { badRequestError, tooManyRequestsError } from '#meta/status-errors.ts'

export interface PasswordCost {
  readonly memoryKiB: number
  readonly passes: number
  readonly parallelism: number
}

export interface DerivationInput extends PasswordCost {
  readonly password: string
  readonly salt: Buffer
  readonly lengthBytes: number
}

/** Argon2id, outside of the event loop. */
export type Derive = (input: DerivationInput) => Promise<Buffer>

export interface PasswordsOptions {
  readonly clock: Clock
  readonly random: Random
  /** Default: `COST`. */
  readonly cost?: PasswordCost
  /** Default: that of node:crypto. */
  readonly derive?: Derive
}

/** `outdated`: right, but the hash has a lower cost than new ones and should be replaced. */
export type PasswordResult = 'wrong' | 'right' | 'outdated'

/** The second choice of OWASP's list: the first takes 46 MiB. */
const COST: PasswordCost = { memoryKiB: 19 * 1024, passes: 2, parallelism: 1 }
/** A stored hash with more than this is refused: it would occupy the server. */
const MAX_COST: PasswordCost = { memoryKiB: 256 * 1024, passes: 10, parallelism: 4 }

const SALT_BYTES = 16
const HASH_BYTES = 32
const MIN_CHARACTERS = 12
const MAX_BYTES = 1024
const MAX_RUNNING = 2
const MAX_WAITING = 50

export class Passwords {
  readonly #options: PasswordsOptions
  readonly #cost: PasswordCost
  readonly #derive: Derive
  readonly #lane = new Lane()
  /** No password has this hash. Its check takes as long as that of a password. */
  readonly #unknown: PasswordHash

  constructor(options: PasswordsOptions) {
    this.#options = options
    this.#cost = options.cost ?? COST
    this.#derive = options.derive ?? deriveArgon2id
    const { random } = options
    this.#unknown = { ...this.#cost, salt: random.bytes(SALT_BYTES), hash: random.bytes(HASH_BYTES) }
  }

  /** Throws StatusError: 400 for a password that is too short or too long, 429 when too many wait. */
  async hash(password: string): Promise<string> {
    checkNewPassword(password)
    const salt = this.#options.random.bytes(SALT_BYTES)
    const hash = await this.#compute({ ...this.#cost, password, salt, lengthBytes: HASH_BYTES })
    return encodeHash({ ...this.#cost, salt, hash })
  }

  /** Takes as long without a stored hash. Throws StatusError: 400 for a password that is too long, 429 as `hash`. */
  async check(password: string, stored: string | undefined): Promise<PasswordResult> {
    checkLength(password)
    const known = stored === undefined ? undefined : decodeHash(stored)
    const { hash, salt, ...cost } = known ?? this.#unknown
    const computed = await this.#compute({ ...cost, password, salt, lengthBytes: hash.length })
    if (!timingSafeEqual(computed, hash) || known === undefined) return 'wrong'
    return isCheaper(cost, this.#cost) ? 'outdated' : 'right'
  }

  #compute(input: DerivationInput): Promise<Buffer> {
    return this.#lane.run(() => this.#options.clock.during(this.#derive(input)))
  }
}

/** Throws StatusError 400. */
export function checkNewPassword(password: string): void {
  checkLength(password)
  if (Array.from(password).length < MIN_CHARACTERS) {
    throw badRequestError(`The password must have at least ${MIN_CHARACTERS} characters`)
  }
}

function checkLength(password: string): void {
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw badRequestError(`The password must have at most ${MAX_BYTES} bytes`)
  }
}

/** Runs two tasks at once; the others wait in order of arrival. */
class Lane {
  #running = 0
  readonly #waiting: (() => void)[] = []

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_RUNNING) await this.#turn()
    else this.#running++
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      // The next task takes over the place of this one.
      if (next === undefined) this.#running--
      else next()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING) throw tooManyRequestsError('Too many log-ins are waiting', 1)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}

interface PasswordHash extends PasswordCost {
  readonly salt: Buffer
  readonly hash: Buffer
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{22,128})$/

function encodeHash({ memoryKiB, passes, parallelism, salt, hash }: PasswordHash): string {
  return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`
}

/** Undefined for other text and for costs above the maximum: no password has that hash. */
function decodeHash(text: string): PasswordHash | undefined {
  const [, memory, passes, parallelism, salt = '', hash = ''] = PHC.exec(text) ?? []
  if (memory === undefined) return undefined
  const cost = { memoryKiB: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (isCheaper(MAX_COST, cost)) return undefined
  return { ...cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}

/** PHC has base64 without padding. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

function isCheaper(cost: PasswordCost, wanted: PasswordCost): boolean {
  return cost.memoryKiB < wanted.memoryKiB || cost.passes < wanted.passes || cost.parallelism < wanted.parallelism
}

function deriveArgon2id({ password, salt, lengthBytes, ...cost }: DerivationInput): Promise<Buffer> {
  const { memoryKiB: memory, passes, parallelism } = cost
  // The same characters may have several encodings: keyboards and systems differ.
  const message = password.normalize('NFKC')
  return new Promise((resolve, reject) => {
    argon2('argon2id', { message, nonce: salt, parallelism, tagLength: lengthBytes, memory, passes }, (error, hash) => {
      if (error === null) resolve(hash)
      else reject(error)
    })
  })
}
