import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { runProgram } from '#kits/cmd/run-program.ts'
import { assertUpstreamFlags } from '#kits/cmd/upstream-flags.ts'

import { cloudControllerManager } from './cloud-controller-manager.ts'
import { CLOUD_FLAGS } from './flags.ts'

async function run(...args: string[]): Promise<string> {
  const { signal } = new AbortController()
  const { err } = await runProgram((context) => cloudControllerManager.run(context, signal), { args })
  return err
}

describe('flags of cloud-controller-manager', () => {
  it("have upstream's names, types and defaults", () => assertUpstreamFlags(CLOUD_FLAGS, 'cloud-controller-manager'))

  const refusals: readonly [args: readonly string[], message: RegExp][] = [
    [[], /Error: --cloud-provider cannot be empty\n$/],
    [['--cloud-provider=local', '--controllers=foo'], /"foo" is not in the list of known controllers\n$/],
    [['--cloud-provider=no-such-cloud'], /Error: unknown cloud provider "no-such-cloud": /],
    [['--cloud-provider=/no/such.mjs'], /Error: unknown cloud provider "\/no\/such\.mjs": /],
    [['--cloud-provider=local'], /Error: invalid configuration: no configuration has been provided/],
  ]
  for (const [args, message] of refusals)
    it(`are refused: ${args.join(' ') || 'none'}`, async () => assert.match(await run(...args), message))
})
