/**
 * Delays log-in attempts after failures, by client address, by username, and by both together. Memory is bounded: the
 * least recently used entries are dropped first.
 */
import { isIPv6 } from 'node:net'

import type { Clock } from '#lib/clock.ts'

export interface ThrottleRule {
  /** So many failures are free. */
  readonly free: number
  /** The delay after the next failure; each further failure doubles it. */
  readonly baseMs: number
  readonly capMs: number
}

export interface ThrottleRules {
  readonly address: ThrottleRule
  /** A username from any address. Its cap is low, because others could otherwise lock a user out. */
  readonly username: ThrottleRule
  readonly usernameAtAddress: ThrottleRule
  /** The number of addresses, of usernames and of pairs that are remembered. */
  readonly maxEntries: number
}

const RULES: ThrottleRules = {
  address: { free: 20, baseMs: 1000, capMs: 5 * 60_000 },
  username: { free: 50, baseMs: 1000, capMs: 30_000 },
  usernameAtAddress: { free: 5, baseMs: 1000, capMs: 15 * 60_000 },
  maxEntries: 10_000,
}

/** Failures are forgotten so long after the last one. */
const FORGET_MS = 30 * 60_000

export class LoginThrottle {
  readonly #addresses: FailureTable
  readonly #usernames: FailureTable
  readonly #pairs: FailureTable

  constructor(clock: Clock, rules: ThrottleRules = RULES) {
    const { maxEntries } = rules
    this.#addresses = new FailureTable(clock, rules.address, maxEntries)
    this.#usernames = new FailureTable(clock, rules.username, maxEntries)
    this.#pairs = new FailureTable(clock, rules.usernameAtAddress, maxEntries)
  }

  /**
   * Returns the seconds to wait. With 0 the attempt may go on, and counts as a failure until `succeeded`: attempts at
   * the same time count too.
   */
  begin(address: string, username: string): number {
    const keys = keysOf(address, username)
    const waitMs = Math.max(
      this.#addresses.waitMs(keys.address),
      this.#usernames.waitMs(keys.username),
      this.#pairs.waitMs(keys.pair),
    )
    if (waitMs > 0) return Math.ceil(waitMs / 1000)
    this.#addresses.fail(keys.address)
    this.#usernames.fail(keys.username)
    this.#pairs.fail(keys.pair)
    return 0
  }

  /** The username starts anew at this address. For other addresses, and for other usernames, only this attempt is taken back. */
  succeeded(address: string, username: string): void {
    const keys = keysOf(address, username)
    this.#addresses.takeBack(keys.address)
    this.#usernames.takeBack(keys.username)
    this.#pairs.delete(keys.pair)
  }

  /** The password was not checked: the attempt does not count. */
  takeBack(address: string, username: string): void {
    const keys = keysOf(address, username)
    this.#addresses.takeBack(keys.address)
    this.#usernames.takeBack(keys.username)
    this.#pairs.takeBack(keys.pair)
  }

  /** The number of entries. */
  get size(): number {
    return this.#addresses.size + this.#usernames.size + this.#pairs.size
  }
}

/** Usernames longer than any that exists take no memory. */
const MAX_USERNAME = 128

function keysOf(address: string, username: string): Record<'address' | 'username' | 'pair', string> {
  const network = networkOf(address)
  const name = username.slice(0, MAX_USERNAME)
  return { address: network, username: name, pair: `${network} ${name}` }
}

/** An IPv6 client has a network of 64 bits to choose addresses from. */
function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const [plain = ''] = address.split('%')
  if (!isIPv6(plain)) return address
  const [before = '', after] = plain.toLowerCase().split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0')
  return [...head, ...(after === undefined ? [] : zeros), ...tail]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}

interface Entry {
  readonly failures: number
  readonly lastMs: number
  readonly blockedUntilMs: number
}

class FailureTable {
  readonly #clock: Clock
  readonly #rule: ThrottleRule
  readonly #maxEntries: number
  /** Those used last are the last. */
  readonly #entries = new Map<string, Entry>()

  constructor(clock: Clock, rule: ThrottleRule, maxEntries: number) {
    this.#clock = clock
    this.#rule = rule
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#entries.size
  }

  waitMs(key: string): number {
    const entry = this.#find(key)
    if (entry === undefined) return 0
    this.#put(key, entry)
    return entry.blockedUntilMs - this.#clock.elapsed()
  }

  fail(key: string): void {
    const { free, baseMs, capMs } = this.#rule
    const now = this.#clock.elapsed()
    const failures = (this.#find(key)?.failures ?? 0) + 1
    const delayMs = failures <= free ? 0 : Math.min(capMs, baseMs * 2 ** (failures - free - 1))
    this.#put(key, { failures, lastMs: now, blockedUntilMs: now + delayMs })
  }

  takeBack(key: string): void {
    const entry = this.#find(key)
    if (entry === undefined) return
    if (entry.failures <= 1) this.#entries.delete(key)
    else this.#put(key, { ...entry, failures: entry.failures - 1, blockedUntilMs: this.#clock.elapsed() })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || this.#clock.elapsed() - entry.lastMs < FORGET_MS) return entry
    this.#entries.delete(key)
    return undefined
  }

  #put(key: string, entry: Entry): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#maxEntries) {
      const [oldest] = this.#entries.keys()
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
    this.#entries.set(key, entry)
  }
}
