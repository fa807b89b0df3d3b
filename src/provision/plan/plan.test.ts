import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { applyPlan } from '../apply/apply.ts'
import { observeCluster } from '../apply/observe.ts'
import { desiredCluster, type HostDraft, SimulatedSite } from '../simulated-site.fixture.ts'
import { planCluster } from './plan.ts'

const OPTIONS = { checksPorts: true, workersOnly: false }

function hosts(count: number): HostDraft[] {
  return Array.from({ length: count }, (_, at) => ({
    name: String(at + 1),
    roles: at < 3 ? ['etcd', 'controlplane'] : ['worker'],
  }))
}

describe('planCluster() of hyperkube build', () => {
  it('plans etcd first, then the control plane, workers and addons', async () => {
    const desired = desiredCluster(hosts(4))
    const { waves } = planCluster(desired, await observeCluster(desired, new SimulatedSite(hosts(4)).site()), OPTIONS)
    assert.deepEqual(
      waves.map(({ name }) => name),
      [
        'ports',
        'files',
        'etcd',
        'health of etcd',
        'control plane',
        'access',
        'state',
        'worker plane',
        'nodes ready',
        'labels and taints',
        'addons',
      ],
    )
  })

  it('starts etcd members and upgrades nodes one by one', async () => {
    const drafts = hosts(5)
    const site = new SimulatedSite(drafts)
    const before = desiredCluster(drafts)
    const signal = new AbortController().signal
    await applyPlan(
      planCluster(before, await observeCluster(before, site.site()), OPTIONS),
      site.site(),
      () => undefined,
      signal,
    )
    const desired = desiredCluster(drafts, '2')
    const { waves } = planCluster(desired, await observeCluster(desired, site.site()), OPTIONS)
    const widths = Object.fromEntries(waves.map(({ name, width }) => [name, width]))
    assert.deepEqual(widths, {
      files: 50,
      etcd: 1,
      'control plane': 1,
      access: 1,
      state: 1,
      'upgrade of control plane nodes': 1,
      'upgrade of nodes': 1,
      addons: 1,
    })
    const [track = []] = waves.find(({ name }) => name === 'upgrade of nodes')?.tracks ?? []
    assert.deepEqual(
      track.map(({ describe: text }) => text),
      ['drain the node', 'start api-proxy', 'start kubelet', 'start kube-proxy', 'wait until the node is ready'],
    )
  })

  it('leaves etcd and the control plane unchanged with updateOnly', async () => {
    const desired = desiredCluster(hosts(4))
    const observed = await observeCluster(desired, new SimulatedSite(hosts(4)).site())
    const { waves } = planCluster(desired, observed, { ...OPTIONS, workersOnly: true })
    assert.ok(waves.every(({ name }) => !/etcd|control/.test(name)))
  })

  it('reports all problems of machines at once', async () => {
    const drafts = hosts(2)
    const desired = desiredCluster(drafts)
    const observed = await observeCluster(
      { ...desired, needs: { ...desired.needs, programs: ['podman'] } },
      new SimulatedSite(drafts).site(),
    )
    const unreachable = new Map(observed.hosts).set('2', { state: 'unreachable', reason: 'no route to host' })
    const wanted = { ...desired, needs: { ...desired.needs, programs: ['podman'] } }
    const { faults } = planCluster(wanted, { ...observed, hosts: unreachable }, OPTIONS)
    assert.deepEqual(faults, ['1: the program podman is missing', '2: no route to host'])
  })

  it('handles five hundred machines', async () => {
    const drafts = hosts(500)
    const desired = desiredCluster(drafts)
    const observed = await observeCluster(desired, new SimulatedSite(drafts).site())
    const { waves } = planCluster(desired, observed, OPTIONS)
    assert.equal(waves.find(({ name }) => name === 'files')?.tracks.length, 500)
  })
})
