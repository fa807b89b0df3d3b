/** Runs the steps of a test script, prints whether each passed and how long it took, and counts failures. */
import { realClock, sleep } from '#lib/clock.ts'

export class Shown {
  #failures = 0
  #steps = 0

  /** `deed` says what was seen; when it rejects, it was not so. The script goes on. */
  async step(what: string, deed: () => Promise<string> | string): Promise<void> {
    const fromMs = realClock.elapsed()
    this.#steps++
    const seconds = (): string => `${((realClock.elapsed() - fromMs) / 1000).toFixed(1)} s`.padStart(8)
    try {
      const seen = await deed()
      process.stdout.write(`ok   ${seconds()}  ${what}${seen === '' ? '' : `: ${seen}`}\n`)
    } catch (error) {
      this.#failures++
      process.stdout.write(`NOT  ${seconds()}  ${what}: ${(error as Error).message}\n`)
    }
  }

  /** True if a step has failed. */
  get hasFailed(): boolean {
    return this.#failures > 0
  }

  /** The exit code of the script. */
  end(): number {
    const held = this.#steps - this.#failures
    process.stdout.write(`${held} of ${this.#steps} steps passed\n`)
    return this.#failures === 0 && this.#steps > 0 ? 0 : 1
  }
}

/** Asks again until it is so; how long that took, in seconds. Rejects with what was seen last. */
export async function untilSo<T>(
  ask: () => Promise<T>,
  isSo: (value: T) => boolean,
  limitSeconds = 60,
): Promise<number> {
  const fromMs = realClock.elapsed()
  for (;;) {
    const value = await ask()
    const seconds = (realClock.elapsed() - fromMs) / 1000
    if (isSo(value)) return seconds
    if (seconds > limitSeconds) throw new Error(`not within ${limitSeconds} s; last: ${JSON.stringify(value)}`)
    await sleep(realClock, 200)
  }
}

/** Rejects when it is not so. */
export function mustBe(isSo: boolean, seen: string): void {
  if (!isSo) throw new Error(seen)
}
