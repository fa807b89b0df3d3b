import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { DesiredCluster } from '../desired.ts'
import { planCluster } from '../plan/plan.ts'
import { stepsOf } from '../plan/step.ts'
import { desiredCluster, type HostDraft, SimulatedSite } from '../simulated-site.fixture.ts'
import { applyPlan } from './apply.ts'
import { observeCluster } from './observe.ts'

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

/**
 * Goes from cluster `before` to `after` with an interruption at every call; returns the steps of an uninterrupted run.
 */
async function change(before: readonly HostDraft[], after: readonly HostDraft[]): Promise<string[]> {
  const end = desiredCluster(after, '1', before)
  const site = new SimulatedSite([...SIX, SEVENTH])
  await up(site, desiredCluster(before))
  const steps = await up(site, end)
  await endEverywhere((one) => up(one, desiredCluster(before)), end, [...SIX, SEVENTH])
  return steps
}

const SEVENTH = { name: '7', roles: ['worker'] } as const

/** Goes from `begin` to `end` with an interruption before and after every call. */
async function endEverywhere(
  begin: (site: SimulatedSite) => Promise<unknown>,
  end: DesiredCluster,
  machines: readonly HostDraft[] = SIX,
): Promise<number> {
  const whole = new SimulatedSite(machines)
  await begin(whole)
  whole.killAt(Number.POSITIVE_INFINITY, 'before')
  await up(whole, end)
  const calls = whole.calls.length
  for (let call = 1; call <= calls; call++)
    for (const moment of ['before', 'after'] as const) {
      const site = new SimulatedSite(machines)
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

describe('hyperkube build up', () => {
  it('creates a cluster, and changes nothing when it runs again', async () => {
    const site = new SimulatedSite(SIX)
    const steps = await up(site, desiredCluster(SIX))
    assert.ok(steps.includes('1 start etcd'))
    assert.equal(site.members.size, 3)
    assert.equal(site.nodes.size, 6)
    assert.deepEqual(await up(site, desiredCluster(SIX)), [])
  })

  it('reaches the same state after any interruption of a new cluster', async () => {
    assert.ok((await endEverywhere(() => Promise.resolve(), desiredCluster(SIX))) > 100)
  })

  it('reaches the same state after any interruption of an upgrade', async () => {
    await endEverywhere((site) => up(site, desiredCluster(SIX)), desiredCluster(SIX, '2'))
  })

  it('reaches the same state after any interruption of adding an etcd member', async () => {
    const before = desiredCluster(SIX.map((host, at) => (at === 2 ? { name: host.name, roles: ['worker'] } : host)))
    await endEverywhere((site) => up(site, before), desiredCluster(SIX))
  })

  it('reaches the same state after any interruption of removing a worker', async () => {
    const steps = await change(SIX, SIX.slice(0, 5))
    assert.deepEqual(steps, ['6 drain the node', '6 remove everything of the cluster', '6 delete the node'])
  })

  it('reaches the same state after any interruption of adding a worker', async () => {
    const steps = await change(SIX, [...SIX, SEVENTH])
    assert.ok(steps.includes('7 start kubelet'))
    assert.ok(steps.every((text) => text.startsWith('7 ') || text.includes('ports')))
  })

  it('reaches the same state after any interruption of removing a control plane with its etcd member', async () => {
    const steps = await change(
      SIX,
      SIX.filter(({ name }) => name !== '2'),
    )
    assert.deepEqual(steps, [
      '2 leave etcd',
      '2 drain the node',
      '2 remove everything of the cluster',
      '2 delete the node',
    ])
  })

  it('reaches the same state after any interruption of moving roles to other machines', async () => {
    const moved = SIX.map((host): HostDraft => {
      if (host.name === '3') return { name: '3', roles: ['worker'] }
      return host.name === '4' ? { name: '4', roles: ['etcd', 'controlplane'] } : host
    })
    const steps = await change(SIX, moved)
    const at = (text: string): number => steps.indexOf(text)
    assert.ok(at('3 leave etcd') < at('4 join etcd') && at('3 leave etcd') >= 0)
    assert.ok(at('4 remove service api-proxy') < at('4 start kube-apiserver') && at('4 remove service api-proxy') >= 0)
    assert.ok(at('3 remove service kube-apiserver') < at('3 start api-proxy'))
    assert.ok(at('3 remove service etcd') < at('3 clear the data of etcd'))
    assert.ok(at('3 leave etcd') < at('3 remove service etcd'))
  })

  it('removes an unreachable machine from the cluster', async () => {
    const site = new SimulatedSite(SIX)
    await up(site, desiredCluster(SIX))
    site.lose('2')
    const left = SIX.filter(({ name }) => name !== '2')
    assert.deepEqual(await up(site, desiredCluster(left, '1', SIX)), [
      '2 leave etcd',
      '2 cordon the node',
      '2 delete the node',
    ])
    assert.equal(site.members.size, 2)
    assert.deepEqual(await up(site, desiredCluster(left, '1', SIX)), [])
  })

  it('removes dead etcd members before working ones', async () => {
    const site = new SimulatedSite(SIX)
    await up(site, desiredCluster(SIX))
    site.lose('3')
    const left = SIX.filter(({ name }) => name !== '2' && name !== '3')
    const steps = await up(site, desiredCluster(left, '1', SIX))
    assert.deepEqual(steps.slice(0, 2), ['3 leave etcd', '2 leave etcd'])
    assert.equal(site.members.size, 1)
  })

  it('reaches the same state after any interruption of disabling addons', async () => {
    const without = { ...desiredCluster(SIX), addons: [] }
    await endEverywhere((site) => up(site, desiredCluster(SIX)), without)
    const site = new SimulatedSite(SIX)
    await up(site, desiredCluster(SIX))
    assert.deepEqual([...site.addons.keys()], ['access', 'dns'])
    assert.deepEqual(await up(site, without), [' remove addon dns'])
    assert.deepEqual([...site.objects.keys()], ['access'])
  })

  it('continues after a failed user addon, but stops after a failed system addon', async () => {
    const plan = async (isOptional: boolean): Promise<readonly string[]> => {
      const addons = [{ name: 'broken', manifest: 'apiVersion: v1\nkind: X\nmetadata: {name: x}\n', isOptional }]
      const site = new SimulatedSite(SIX)
      const tools = site.site()
      const desired = { ...desiredCluster(SIX), addons: [...desiredCluster(SIX).addons, ...addons] }
      const failing = {
        ...tools,
        api: {
          ...tools.api,
          apply: (manifest: string, signal: AbortSignal): Promise<void> =>
            manifest.includes('kind: X')
              ? Promise.reject(new Error('no such kind'))
              : tools.api.apply(manifest, signal),
        },
      }
      const steps = planCluster(desired, await observeCluster(desired, tools), OPTIONS)
      const { failures } = await applyPlan(steps, failing, () => undefined, new AbortController().signal)
      return failures.map(({ message }) => message)
    }
    assert.deepEqual(await plan(true), ['cannot apply addon broken: no such kind'])
    await assert.rejects(plan(false), /cannot apply addon broken/)
  })

  it('makes no further changes after an abort', async () => {
    const site = new SimulatedSite(SIX)
    const tools = site.site()
    const desired = desiredCluster(SIX)
    const plan = planCluster(desired, await observeCluster(desired, tools), OPTIONS)
    const stop = new AbortController()
    let done = 0
    const onProgress = ({ event }: { event: string }): void => {
      if (event === 'done' && ++done === 10) stop.abort(new Error('enough'))
    }
    await assert.rejects(applyPlan(plan, tools, onProgress, stop.signal), /enough/)
    assert.ok(done < stepsOf(plan).length)
  })
})
