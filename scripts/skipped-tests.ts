/**
 * A reporter for Node's test runner: writes one JSON line for each skipped test. The file also has the rule that
 * decides which skipped tests fail the gate.
 */
import { accessSync, constants } from 'node:fs'
import type { TestEvent } from 'node:test/reporters'

export interface SkippedTest {
  readonly name: string
  readonly file: string
  readonly reason: string
}

interface Condition {
  readonly reason: RegExp
  /** Why set-up cannot install what the test needs. */
  readonly because: string
}

/** Skips that set-up cannot prevent: they depend on the machine or on files outside the repository. */
const UNAVOIDABLE: readonly Condition[] = [
  { reason: /^no API facts in /, because: 'the interface facts are kept beside the repository, not in it' },
  { reason: /no node older than 22/, because: 'set-up uses the Node it finds' },
  { reason: /no helm and no Go/, because: 'set-up does not install Go' },
  { reason: /cgroup/, because: 'the kernel decides which cgroup version it has' },
  { reason: /^needs Linux on x86-64$/, because: 'the test runs a program of that architecture' },
  { reason: /the libc here is not glibc/, because: 'the distribution decides which libc it has' },
]

/** The skipped tests that fail the gate: set-up could have installed what they need. */
export function avoidableSkips(skipped: readonly SkippedTest[]): SkippedTest[] {
  return skipped.filter(({ reason }) => !UNAVOIDABLE.some((one) => one.reason.test(reason)))
}

/** True if set-up can install system packages: see installSystemPackages in with-setup.mjs. */
export function canInstallPackages(): boolean {
  if (process.getuid?.() !== 0) return false
  try {
    accessSync('/usr/bin/apt-get', constants.X_OK)
    return true
  } catch {
    return false
  }
}

export function parseSkips(lines: string): SkippedTest[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SkippedTest)
}

// oxlint-disable-next-line import/no-default-export -- node's test runner takes a reporter from the default export
export default async function* reportSkips(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:pass' || event.data.skip === undefined) continue
    const { name, file = '', skip } = event.data
    yield `${JSON.stringify({ name, file, reason: typeof skip === 'string' ? skip : '' } satisfies SkippedTest)}\n`
  }
}
