/** A reporter for Node's test runner: writes one JSON line for each failed test. */
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

/** The line for a failed test. */
export interface FailedTest {
  readonly file: string
  readonly name: string
  readonly why: string
}

// The runner takes what a reporter has as its default.
// oxlint-disable-next-line import/no-default-export
export default async function* failedTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:fail') continue
    const { name, file = '', todo, details } = event.data
    const cause = details.error.cause
    // A suite fails if its tests fail, and those are already reported.
    if (todo !== undefined || (details.error as { failureType?: string }).failureType === 'subtestsFailed') continue
    const why = inspect(cause ?? details.error)
    yield `${JSON.stringify({ file, name, why } satisfies FailedTest)}\n`
  }
}
