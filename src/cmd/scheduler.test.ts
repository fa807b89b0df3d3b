import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { runProgram } from '#testing/run-program.ts'
import { assertUpstreamFlags } from '#testing/upstream-flags.ts'

import { UPSTREAM_SCHEDULER_FLAGS } from './scheduler-flags.fixture.ts'
import { SCHEDULER_FLAGS } from './scheduler-flags.ts'
import { scheduler } from './scheduler.ts'

async function run(...args: string[]): Promise<string> {
  const { signal } = new AbortController()
  const { err } = await runProgram((context) => scheduler.run(context, signal), { args })
  return err
}

describe('the flags of kube-scheduler', () => {
  it("are all of upstream's, in its groups and their order, with its types and defaults", () => {
    assertUpstreamFlags(SCHEDULER_FLAGS, UPSTREAM_SCHEDULER_FLAGS)
  })

  const refusals: readonly [args: readonly string[], message: string][] = [
    [['--leader-elect-renew-deadline=15s'], 'leaseDuration must be greater than renewDeadline'],
    [['--kubeconfig=nowhere'], 'stat nowhere: no such file or directory'],
    [
      ['--leader-elect-resource-lock=endpoints'],
      '--leader-elect-resource-lock=endpoints is not supported: who leads is said in a Lease',
    ],
  ]
  for (const [args, message] of refusals) {
    it(`refuses ${args.join(' ')}`, async () => {
      assert.match(await run(...args), new RegExp(`Error: ${RegExp.escape(message)}\n$`))
    })
  }
})
