/** Tests the pages of the clusters of a management server in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Cluster, type ClusterStatus, Clusters } from '#management/kinds/cluster.ts'
import type { UpPrograms } from '#management/up-clusters/programs.ts'

import { importCluster } from '../management/downstream.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'
const TIME = '2026-01-01T00:00:00Z'

/** No cluster starts on this machine. */
const NOTHING_STARTS: UpPrograms = {
  find: () => Promise.resolve(undefined),
  start: () => Promise.reject(new Error('containerd is missing')),
  stop: () => Promise.resolve(),
  remove: () => Promise.resolve(),
}

describe('clusters of a management server in the console', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  let shop = ''
  let reader = ''
  before(async () => {
    bed = await startServerBed(NOTHING_STARTS)
    shop = (await importCluster(bed.server, 'shop')).id
    reader = (await bed.server.createUser('reader')).name
  })
  after(() => bed?.[Symbol.asyncDispose]())

  function setStatus(name: string, status: ClusterStatus): Promise<Cluster> {
    const change = (now: Cluster): Cluster => ({ ...now, status })
    return bed.server.running.objects.change(Clusters, name, change, { subresource: 'status' })
  }

  it('are cards that change by themselves, and their names are in the bar', async () => {
    const { page } = bed
    await page.getByRole('article', { name: 'shop' }).getByText('Waits for its agent').waitFor()
    await setStatus(shop, {
      version: 'v1.36.4',
      nodes: { total: 3, ready: 2 },
      capacity: { cpu: '16', memory: '65011712Ki' },
      conditions: [
        { type: 'RolesApplied', status: 'False', reason: 'X', message: MARKUP, lastTransitionTime: TIME },
        { type: 'Connected', status: 'True', reason: 'X', message: '', lastTransitionTime: TIME },
      ],
      agent: { connectedAt: TIME },
    })
    const card = page.getByRole('article', { name: 'shop' })
    await card.getByText('2 of 3 ready').waitFor()
    await card.getByText('16 cores, 62 GiB').waitFor()
    await card.getByText(MARKUP).waitFor()
    assert.deepEqual(await bed.violations(), [])
    await importCluster(bed.server, 'late')
    await page.getByRole('article', { name: 'late' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('late')
    await page.getByRole('option', { name: 'late Cluster' }).waitFor()
    await page.keyboard.press('Escape')
  })

  it('have a page with conditions, size, agent and actions', async () => {
    const { page } = bed
    await bed.open('/')
    await page.getByRole('link', { name: 'Manage shop' }).click()
    await page.getByRole('heading', { name: 'shop' }).waitFor()
    await page.getByRole('heading', { name: 'Conditions' }).waitFor()
    await page.getByText(MARKUP).first().waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Install agent …' }).click()
    await page.getByRole('button', { name: 'Show the command' }).click()
    await page.getByText('kubectl apply -f').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Done' }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Kubeconfig' }).click()
    assert.equal((await download).suggestedFilename(), 'shop.kubeconfig')
  })

  it('let administrators change the authorized endpoint', async () => {
    const { page, server } = bed
    await bed.open(`/clusters/${shop}`)
    await page.getByRole('button', { name: 'Change …' }).click()
    await page.getByLabel('Kubeconfigs lead to the API servers too').check()
    await page.getByLabel('Or addresses of API servers').fill('10.0.0.1\n10.0.0.2:6444')
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Kubeconfigs also lead to 10.0.0.1, 10.0.0.2:6444').waitFor()
    assert.deepEqual(server.running.objects.get(Clusters, shop)?.spec.authorizedEndpoint, {
      enabled: true,
      addresses: ['10.0.0.1', '10.0.0.2:6444'],
    })
  })

  it('are removed after a dialog that says what goes', async () => {
    const { page, server } = bed
    const { id } = await importCluster(server, 'old')
    await bed.open(`/clusters/${id}`)
    await page.getByRole('button', { name: 'Remove …' }).click()
    await page.getByText('The workloads of the cluster stay.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('This server could not remove from the cluster').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('article', { name: 'shop' }).waitFor()
    await page.getByRole('article', { name: 'old' }).waitFor({ state: 'detached' })
  })

  it('run on the machine of the server: start, stop, fork and remove', async () => {
    const { page, server } = bed
    await bed.open('/')
    await page.getByRole('button', { name: 'Start a cluster here …' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('trial')
    await dialog.getByLabel('Number of nodes').fill('some')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await dialog.getByText('"some" is not a number of nodes').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await dialog.getByLabel('Number of nodes').fill('2')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('article', { name: 'trial' }).getByText('Start failed').waitFor()
    await page.getByRole('link', { name: 'Manage trial' }).click()
    await page.getByText('Running: containerd is missing').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Fork …' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click()
    await page.getByRole('heading', { name: 'trial (fork)' }).waitFor()
    await page.getByRole('button', { name: 'Remove …' }).click()
    await page.getByLabel('Type "trial (fork)" to confirm').fill('trial')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Type "trial (fork)" to remove the cluster').waitFor()
    await page.getByLabel('Type "trial (fork)" to confirm').fill('trial (fork)')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('heading', { name: 'Clusters' }).waitFor()
    await page.getByRole('article', { name: 'trial (fork)' }).waitFor({ state: 'detached' })
    assert.equal(server.running.objects.list(Clusters).filter(({ spec }) => spec.source === 'up').length, 1)
  })

  it('are hidden from other users, and show members no actions of owners', async () => {
    const { server } = bed
    const page = await bed.openAs('reader', '/')
    await page.getByText('You have no clusters').waitFor()
    await page.getByText('needs the global role clusters-create').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Import a cluster …' }).count(), 0)
    await bed.show(page, `/clusters/${shop}`)
    await page.getByText(`There is no cluster ${shop}`).waitFor()
    const body = { role: 'cluster-read-only', user: reader }
    await server.request('POST', `/v3/clusters/${shop}/members`, { token: server.administrator, body })
    await page.getByRole('heading', { name: 'shop' }).waitFor()
    await page.getByText('Administrators can change it.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Remove …' }).count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Install agent …' }).count(), 0)
    await page.context().close()
  })

  it('are a table when there are many, with problems first and a filter in the address', async () => {
    const { page, server } = bed
    const names = Array.from({ length: 200 }, (_none, at) => `fleet-${at + 1}`)
    const { client } = server.running.cluster
    await Promise.all(
      names.map((displayName) =>
        client.create(Clusters, { metadata: { name: `c-${displayName}` }, spec: { displayName, source: 'imported' } }),
      ),
    )
    const ready = { type: 'Ready', status: 'True', reason: 'X', message: '', lastTransitionTime: TIME } as const
    for (const name of names.slice(0, 3)) await setStatus(`c-${name}`, { conditions: [ready], version: 'v1.36.4' })
    await setStatus('c-fleet-150', { agent: { connectedAt: TIME, disconnectedAt: TIME } })
    await bed.open('/')
    const rows = page.getByRole('row')
    await page.getByRole('cell', { name: 'fleet-200', exact: true }).waitFor()
    assert.match((await rows.nth(1).textContent()) ?? '', /fleet-150Disconnected for/)
    assert.match((await rows.last().textContent()) ?? '', /Ready/)
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('searchbox').fill('fleet ready -disconnected v1.36')
    await page.getByText(/^3 of 20\d$/).waitFor()
    await page.reload()
    await page.getByText(/^3 of 20\d$/).waitFor()
    await setStatus('c-fleet-4', { conditions: [ready], version: 'v1.36.4' })
    await page.getByText(/^4 of 20\d$/).waitFor()
    await page.getByRole('searchbox').fill('nothing fits')
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByRole('cell', { name: 'fleet-200', exact: true }).waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
