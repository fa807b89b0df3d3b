/** Tests the pages of machines, snapshots and rotations of a built cluster in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { Operations } from '#management/kinds/operation.ts'
import type { OpenMachines } from '#provision/builder/session-options.ts'
import { clusterText, simulatedBuild, withoutKubeconfig } from '#provision/simulated-build.fixture.ts'
import { SimulatedSite } from '#provision/simulated-site.fixture.ts'

import { eventually } from '../management/bed.ts'
import { claimStatus, openTunnel } from '../management/machine-bed.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const SNAPSHOTS = [
  { name: 'rke_etcd_snapshot_2026-01-01T10-00-00Z', revision: 812, sizeBytes: 20_000_000 },
  { name: 'broken', problem: 'the checksum does not fit' },
]
const site = new SimulatedSite([{ name: '1', roles: [] }])
/** Connections wait for it. */
const gate: { opening: Promise<void> } = { opening: Promise.resolve() }

/** Machines that have two snapshots. */
function withSnapshots(open: OpenMachines): OpenMachines {
  return async (...options) => {
    await gate.opening
    const connections = await open(...options)
    const machine = connections.machine.bind(connections)
    connections.machine = async (name) => {
      const found = await machine(name)
      const run: typeof found.run = async (asked, signal) =>
        asked.command.includes('--list')
          ? { code: 0, stdout: JSON.stringify(SNAPSHOTS), stderr: '' }
          : found.run(asked, signal)
      return { ...found, run }
    }
    return connections
  }
}

describe('machines and snapshots in the console', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  let cluster = ''
  before(async () => {
    const build = simulatedBuild(site)
    bed = await startServerBed(undefined, {
      site: {
        openMachines: withSnapshots(build.openMachines),
        openApi: (...all) => withoutKubeconfig(build.openApi)(...all),
        own: build.own,
        uid: () => Promise.resolve(`uid-${realClock.now()}`),
      },
    })
    const { server } = bed
    const file = clusterText({ '1': ['etcd', 'controlplane', 'worker'] })
    const body = { displayName: 'shop', source: 'built', file, approval: 'Automatic' }
    const made = await server.request('POST', '/v3/clusters', { token: server.administrator, body })
    cluster = String(made.body['cluster'].metadata.name)
    await eventually('the cluster is built', () => {
      return server.running.objects.get(Clusters, cluster)?.status?.build?.appliedAt !== undefined
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('give the command that connects a machine, and show the machine as soon as it has joined', async () => {
    const { page, server } = bed
    await bed.open(`/clusters/${cluster}?tab=machines`)
    await page.getByText('No machine has registered').waitFor()
    await page.getByRole('button', { name: 'Connect a machine …' }).click()
    await page.getByText('Name, addresses, labels and taints').click()
    await page.getByLabel('Labels, key=value').fill('zone')
    await page.getByRole('button', { name: 'Show the command' }).click()
    await page.getByText('The label "zone" must be key=value').waitFor()
    await page.getByLabel('Labels, key=value').fill('zone=a')
    await page.getByLabel('Taints, key=value:effect').fill('dedicated=x:NoSchedule')
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Show the command' }).click()
    const linux = page.getByRole('region', { name: 'Linux, as a service of systemd' })
    await linux.getByText('--worker --label=zone=a --taint=dedicated=x:NoSchedule').waitFor()
    await page.getByRole('region', { name: 'Windows' }).getByText('hyperkube.cmd node agent').waitFor()
    assert.deepEqual(await bed.violations(), [])
    const [, token = ''] = /--token=(\S+)/.exec((await linux.textContent()) ?? '') ?? []
    await page.getByRole('button', { name: 'Done' }).click()
    const machine = { node: 'w-1', credential: 'c'.repeat(40), token } as const
    assert.equal(await claimStatus(server, { ...machine, mode: 'register' }), 101)
    await page.getByRole('cell', { name: 'w-1', exact: true }).waitFor()
    const tunnel = await openTunnel(server, machine)
    await page.getByText(/^Connected for/).waitFor()
    assert.deepEqual(await bed.violations(), [])
    await tunnel.close()
    await page.getByText('Disconnected for').waitFor()
  })

  it('can be added to the cluster file', async () => {
    const { page } = bed
    await bed.open(`/clusters/${cluster}?tab=file`)
    await page.getByRole('button', { name: 'Add w-1 to the file' }).click()
    await page.getByRole('textbox', { name: 'Cluster file' }).getByText('hostname_override: w-1').waitFor()
    await page.getByRole('textbox', { name: 'Cluster file' }).getByText('address: 10.0.0.7').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Add w-1 to the file' }).count(), 0)
    await bed.open(`/clusters/${cluster}?tab=machines`)
  })

  it('remove a machine after a dialog', async () => {
    const { page } = bed
    await page.getByRole('button', { name: 'Remove w-1' }).click()
    await page.getByText('Its agent stops within minutes').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('No machine has registered').waitFor()
  })

  it('list snapshots, and take one', async () => {
    const { page } = bed
    await bed.open(`/clusters/${cluster}?tab=snapshots`)
    await page.getByText('19 MiB').waitFor()
    await page.getByText('1: the checksum does not fit').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Restore broken' }).count(), 0)
    await page.getByLabel('Hours between snapshots').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Take a snapshot …' }).click()
    await page.getByRole('textbox', { name: /^Name/ }).fill('../x')
    await page.getByRole('button', { name: 'Take the snapshot' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: /^Name/ }).fill('before-upgrade')
    await page.getByRole('button', { name: 'Take the snapshot' }).click()
    await page.getByRole('heading', { name: 'Take snapshot before-upgrade' }).waitFor()
    await page.getByText('Succeeded', { exact: true }).first().waitFor()
  })

  it('change the schedule of snapshots in the cluster file', async () => {
    const { page, server } = bed
    await bed.open(`/clusters/${cluster}?tab=snapshots`)
    await page.getByLabel('Hours between snapshots').fill('4')
    await page.getByRole('button', { name: 'Save the schedule' }).click()
    await page.getByRole('heading', { name: 'Apply the cluster file' }).waitFor()
    assert.match(server.running.objects.get(Clusters, cluster)?.spec.build?.file ?? '', /interval_hours: 4\n/)
    await eventually('the file is applied', () => {
      const operations = server.running.objects.list(Operations)
      return operations.every(({ status }) => status?.phase === 'Succeeded')
    })
  })

  it('restore a snapshot only after its consequences were confirmed', async () => {
    const { page, server } = bed
    await bed.open(`/clusters/${cluster}?tab=snapshots`)
    await page.getByRole('button', { name: /^Restore rke_etcd/ }).click()
    await page.getByText('Every change since then is lost').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByLabel('Type "shop" to confirm').fill('other')
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('alert').waitFor()
    const restorations = (): number =>
      server.running.objects.list(Operations).filter(({ spec }) => spec.type === 'RestoreSnapshot').length
    assert.equal(restorations(), 0)
    await page.getByLabel('Type "shop" to confirm').fill('shop')
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('heading', { name: `Restore snapshot ${SNAPSHOTS[0]?.name}` }).waitFor()
    assert.equal(restorations(), 1)
    await page.getByRole('button', { name: 'Cancel …' }).click()
    await page.getByRole('button', { name: 'Cancel the operation' }).click()
    await page.getByText('Cancelled').first().waitFor()
  })

  it('rotate certificates after a dialog that says what happens', async () => {
    const { page } = bed
    await page.getByRole('button', { name: 'Rotate …' }).click()
    await page.getByRole('combobox', { name: 'New' }).selectOption('authorities')
    await page.getByText('New authorities, and certificates from them').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('combobox', { name: 'New' }).selectOption('kubelet')
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('heading', { name: 'Rotate the certificates of kubelet' }).waitFor()
  })

  it('are closed to members who are no owners, with clear words', async () => {
    const { server } = bed
    const { name } = await server.createUser('reader')
    const body = { role: 'cluster-read-only', user: name }
    await server.request('POST', `/v3/clusters/${cluster}/members`, { token: server.administrator, body })
    const page = await bed.openAs('reader', `/clusters/${cluster}?tab=machines`)
    await page.getByText('Owners of the cluster connect machines.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Connect a machine …' }).count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Rotate …' }).count(), 0)
    assert.equal(await page.getByRole('link', { name: 'Snapshots' }).count(), 0)
    await page.context().close()
    assert.deepEqual(bed.troubles, [])
  })

  it('are cleaned when the cluster is removed, and the last operation stays on the page', async () => {
    const { page, server } = bed
    await bed.open(`/clusters/${cluster}`)
    await page.getByRole('button', { name: 'Remove …' }).click()
    await page.getByText('removes Kubernetes and all data of the cluster').waitFor()
    await page.getByLabel('Type "shop" to confirm').fill('shop')
    // The page cannot read an operation that ends with its cluster before the page has asked for it.
    const opening = Promise.withResolvers<void>()
    gate.opening = opening.promise
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('heading', { name: 'Remove the cluster' }).waitFor()
    opening.resolve()
    await page.getByRole('heading', { name: 'shop was removed' }).waitFor()
    await page.getByRole('heading', { name: 'Remove the cluster' }).waitFor()
    await eventually('the cluster is gone', () => server.running.objects.get(Clusters, cluster) === undefined)
    assert.equal(site.machines.get('1')?.services.size, 0)
    assert.deepEqual(bed.troubles, [])
  })
})
