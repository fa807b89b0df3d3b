import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { applyPlan } from '../apply/apply.ts'
import { observeCluster } from '../apply/observe.ts'
import { desiredCluster, type HostDraft, SimulatedSite } from '../simulated-site.fixture.ts'
import { planCluster } from './plan.ts'

const OPTIONS = { checksPorts: false, workersOnly: false }

function planes(names: string): HostDraft[] {
  return names.split('').map((name) => ({ name, roles: ['etcd', 'controlplane'] }))
}

const WORKER: HostDraft = { name: '9', roles: ['worker'] }

async function faultsOf(
  before: readonly HostDraft[],
  after: readonly HostDraft[],
  meddle: (site: SimulatedSite) => void = () => undefined,
  options = OPTIONS,
): Promise<readonly string[]> {
  const site = new SimulatedSite(new Map([...before, ...after].map((host) => [host.name, host])).values().toArray())
  const first = desiredCluster(before)
  const tools = site.site()
  const signal = new AbortController().signal
  await applyPlan(planCluster(first, await observeCluster(first, tools), OPTIONS), tools, () => undefined, signal)
  meddle(site)
  const desired = desiredCluster(after, '1', before)
  return planCluster(desired, await observeCluster(desired, site.site()), options).faults
}

describe('plan for new etcd members', () => {
  it('adds them before existing members restart', async () => {
    const site = new SimulatedSite(planes('123'))
    const tools = site.site()
    const first = desiredCluster(planes('12'))
    const signal = new AbortController().signal
    await applyPlan(planCluster(first, await observeCluster(first, tools), OPTIONS), tools, () => undefined, signal)
    const desired = desiredCluster(planes('123'), '2', planes('12'))
    const { waves } = planCluster(desired, await observeCluster(desired, tools), OPTIONS)
    const hosts = waves.find(({ name }) => name === 'etcd')?.tracks.map(([step]) => step?.host)
    assert.deepEqual(hosts, ['3', '1', '2'])
  })
})

describe('plan that could lose the cluster', () => {
  it('is rejected if it replaces all etcd members or all control planes at once', async () => {
    const faults = await faultsOf(planes('1'), planes('2'))
    assert.equal(faults.length, 3)
    assert.match(faults.join('\n'), /No machine stays in etcd/)
    assert.match(faults.join('\n'), /No machine stays in the control plane/)
    assert.deepEqual(await faultsOf(planes('12'), planes('23')), [])
  })

  it('is rejected if the running etcd members would lose their majority', async () => {
    const lose = (site: SimulatedSite): void => {
      site.lose('4')
      site.lose('5')
    }
    const faults = await faultsOf(planes('12345'), planes('145'), lose)
    assert.ok(faults.includes('etcd would lose its majority: of 3 members that stay 1 run'), faults.join('\n'))
    assert.deepEqual(await faultsOf(planes('12345'), planes('123'), lose), [])
  })

  it('is rejected if etcd does not respond but its members would change', async () => {
    const lose = (site: SimulatedSite): void => {
      site.lose('1')
      site.lose('2')
    }
    const faults = await faultsOf(planes('123'), planes('3'), lose)
    assert.match(faults.join('\n'), /etcd does not respond: no member can join or leave/)
  })

  it('is rejected if a machine leaves the control plane with --update-only', async () => {
    const options = { ...OPTIONS, workersOnly: true }
    const before = [...planes('123'), WORKER]
    assert.deepEqual(await faultsOf(before, [...planes('12'), WORKER], undefined, options), [
      '3: the machine leaves etcd or the control plane, which --update-only does not change',
    ])
    assert.deepEqual(await faultsOf(before, planes('123'), undefined, options), [])
  })
})
