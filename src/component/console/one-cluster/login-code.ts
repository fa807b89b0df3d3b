/**
 * The one-time code with which a browser logs in to the console of one cluster. Using it makes another one. Wrong
 * codes are limited, although 256 bits cannot be guessed.
 */
import { hash, timingSafeEqual } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

export type Redemption = 'accepted' | 'wrong' | 'too-many'

const CODE_BYTES = 32
/** Wrong codes in a period. */
const MAX_WRONG = 20
export const WRONG_PERIOD_MS = 10_000

export class LoginCode {
  readonly #clock: Clock
  readonly #random: Random
  #code: string
  #wrong = 0
  #periodEndsMs = 0

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
    this.#code = this.#create()
  }

  /** The code that is valid now. */
  get current(): string {
    return this.#code
  }

  /** `accepted`: the code was right, and no longer is. */
  redeem(code: string): Redemption {
    if (this.#isBusy()) return 'too-many'
    if (!isSame(code, this.#code)) {
      this.#wrong++
      return 'wrong'
    }
    this.#code = this.#create()
    return 'accepted'
  }

  #create(): string {
    return this.#random.bytes(CODE_BYTES).toString('base64url')
  }

  #isBusy(): boolean {
    const nowMs = this.#clock.elapsed()
    if (nowMs >= this.#periodEndsMs) {
      this.#periodEndsMs = nowMs + WRONG_PERIOD_MS
      this.#wrong = 0
    }
    return this.#wrong >= MAX_WRONG
  }
}

/** Takes the same time for every wrong code. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
}
