import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { runProgram } from '#testing/run-program.ts'
import { assertUpstreamFlags } from '#testing/upstream-flags.ts'

import { UPSTREAM_CLOUD_FLAGS } from './cloud-controller-manager-flags.fixture.ts'
import { CLOUD_FLAGS } from './cloud-controller-manager-flags.ts'
import { cloudControllerManager } from './cloud-controller-manager.ts'

async function run(...args: string[]): Promise<string> {
  const { signal } = new AbortController()
  const { err } = await runProgram((context) => cloudControllerManager.run(context, signal), { args })
  return err
}

describe('the flags of cloud-controller-manager', () => {
  it("are all of upstream's, with its types and defaults", () => assertUpstreamFlags(CLOUD_FLAGS, UPSTREAM_CLOUD_FLAGS))

  const refusals: readonly [args: readonly string[], message: RegExp][] = [
    [[], /Error: --cloud-provider cannot be empty\n$/],
    [['--cloud-provider=local', '--controllers=foo'], /"foo" is not in the list of known controllers\n$/],
    [['--cloud-provider=no-such-cloud'], /Error: unknown cloud provider "no-such-cloud": /],
    [['--cloud-provider=/no/such.mjs'], /Error: unknown cloud provider "\/no\/such\.mjs": /],
    [['--cloud-provider=local'], /Error: invalid configuration: no configuration has been provided/],
  ]
  for (const [args, message] of refusals)
    it(`refuses ${args.join(' ')}`, async () => assert.match(await run(...args), message))
})
