import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { applyPlan } from './apply.ts'
import type { DesiredCluster } from './desired.ts'
import { observeCluster } from './observe.ts'
import { planCluster } from './plan.ts'
import { desiredCluster, SimulatedSite } from './simulated-site.fixture.ts'
import { stepsOf } from './step.ts'

const SIX = [
  ...['1', '2', '3'].map((name) => ({ name, roles: ['etcd', 'controlplane'] as const })),
  ...['4', '5', '6'].map((name) => ({ name, roles: ['worker'] as const })),
]

const OPTIONS = { checksPorts: true, workersOnly: false }

async function up(site: SimulatedSite, desired: DesiredCluster): Promise<string[]> {
  const tools = site.site()
  const plan = planCluster(desired, await observeCluster(desired, tools), OPTIONS)
  assert.deepEqual(plan.faults, [])
  await applyPlan(plan, tools, () => undefined, new AbortController().signal)
  return stepsOf(plan).map(({ host, describe: text }) => `${host} ${text}`)
}

/** From `begin` to `end`, ended at every call, done or not done. */
async function endEverywhere(begin: (site: SimulatedSite) => Promise<unknown>, end: DesiredCluster): Promise<number> {
  const whole = new SimulatedSite(SIX)
  await begin(whole)
  whole.killAt(Number.POSITIVE_INFINITY, 'before')
  await up(whole, end)
  const calls = whole.calls.length
  for (let call = 1; call <= calls; call++)
    for (const moment of ['before', 'after'] as const) {
      const site = new SimulatedSite(SIX)
      await begin(site)
      site.killAt(call, moment)
      await up(site, end).catch(() => undefined)
      site.killAt(Number.POSITIVE_INFINITY, 'before')
      await up(site, end)
      assert.deepEqual(site.snapshot(), whole.snapshot(), `ended ${moment} call ${call}`)
      assert.deepEqual(await up(site, end), [], `a third run after an end ${moment} call ${call}`)
    }
  return calls
}

describe('applyPlan()', () => {
  it('makes a cluster, and has nothing to do the second time', async () => {
    const site = new SimulatedSite(SIX)
    const steps = await up(site, desiredCluster(SIX))
    assert.ok(steps.includes('1 start etcd'))
    assert.equal(site.members.size, 3)
    assert.equal(site.nodes.size, 6)
    assert.deepEqual(await up(site, desiredCluster(SIX)), [])
  })

  it('comes to the same whenever it was ended, for a new cluster', async () => {
    assert.ok((await endEverywhere(() => Promise.resolve(), desiredCluster(SIX))) > 100)
  })

  it('comes to the same whenever it was ended, for another version', async () => {
    await endEverywhere((site) => up(site, desiredCluster(SIX)), desiredCluster(SIX, '2'))
  })

  it('comes to the same whenever it was ended, for a member more', async () => {
    const before = desiredCluster(SIX.map((host, at) => (at === 2 ? { name: host.name, roles: ['worker'] } : host)))
    await endEverywhere((site) => up(site, before), desiredCluster(SIX))
  })

  it('changes nothing more once it is aborted', async () => {
    const site = new SimulatedSite(SIX)
    const tools = site.site()
    const desired = desiredCluster(SIX)
    const plan = planCluster(desired, await observeCluster(desired, tools), OPTIONS)
    const stop = new AbortController()
    let done = 0
    const told = ({ event }: { event: string }): void => {
      if (event === 'done' && ++done === 10) stop.abort(new Error('enough'))
    }
    await assert.rejects(applyPlan(plan, tools, told, stop.signal), /enough/)
    assert.ok(done < stepsOf(plan).length)
  })
})
