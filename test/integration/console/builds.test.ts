/** Tests the pages that build clusters, on simulated machines, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { simulatedBuild, withoutKubeconfig } from '#provision/simulated-build.fixture.ts'
import { SimulatedSite } from '#provision/simulated-site.fixture.ts'

import { eventually } from '../management/bed.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const MORE =
  'network: {plugin: flannel}\ndns: {provider: none}\ningress: {provider: none}\nmonitoring: {provider: none}\n'
/** Machines 1 to 3 with the addresses 10.0.0.1 to 10.0.0.3. */
const site = new SimulatedSite(['1', '2', '3'].map((name) => ({ name, roles: [] })))
/** Connections wait for it. */
const gate: { opening: Promise<void> } = { opening: Promise.resolve() }

describe('building clusters in the console', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  let cluster = ''
  before(async () => {
    const build = simulatedBuild(site)
    bed = await startServerBed(undefined, {
      site: {
        openMachines: async (...all) => {
          await gate.opening
          return build.openMachines(...all)
        },
        openApi: (...all) => withoutKubeconfig(build.openApi)(...all),
        own: { includes: new Map(), archives: [] },
        uid: () => Promise.resolve(`uid-${realClock.now()}`),
      },
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('begins with a form that writes the cluster file and says what is missing', async () => {
    const { page } = bed
    await page.getByRole('link', { name: 'Build a cluster' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByText('Machine 1: give its address.').waitFor()
    await page.getByLabel('Address', { exact: true }).fill('10.0.0.1')
    await page.getByLabel('Name (optional)').fill('1')
    await page.getByRole('textbox', { name: 'Cluster file' }).getByText('address: 10.0.0.1').waitFor()
    assert.deepEqual(await bed.violations(), [])
  })

  it('shows the faults of the server at their lines', async () => {
    const { page } = bed
    const editor = page.getByRole('textbox', { name: 'Cluster file' })
    await editor.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText(`${MORE}nonsense: 1\n`)
    await page.getByText('You have changed the text').waitFor()
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByText('The cluster file has faults').waitFor()
    await page.getByText(/^nonsense: line \d+: /).waitFor()
    await page.locator('.cm-lintRange-error').first().waitFor()
    assert.deepEqual(await bed.violations(), [])
    await editor.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.press('Shift+ArrowUp')
    await page.keyboard.press('Backspace')
  })

  it('shows the plan, waits for approval, and follows the work', async () => {
    const { page } = bed
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByRole('heading', { name: /^The plan: \d+ steps on 1 machine$/ }).waitFor()
    cluster = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    await page.getByText('Waits for approval').first().waitFor()
    assert.equal(site.machines.get('1')?.services.size, 0)
    assert.deepEqual(await bed.violations(), [])
    const opening = Promise.withResolvers<void>()
    gate.opening = opening.promise
    await page.getByRole('button', { name: 'Approve the plan' }).click()
    await page.getByText('Running', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Log', exact: true }).click()
    opening.resolve()
    await page.getByText('Succeeded', { exact: true }).first().waitFor()
    await page.getByRole('log').getByText('start etcd').first().waitFor()
    await page.getByText('Complete', { exact: true }).first().waitFor()
    await page.getByText(/^(\d+) of \1 steps done$/).waitFor()
    await page.getByRole('button', { name: /etcd/ }).first().click()
    await page.getByRole('cell', { name: 'Done' }).first().waitFor()
    assert.deepEqual(await bed.violations(), [])
  })

  it('changes the cluster file after the difference was shown', async () => {
    const { page } = bed
    await page.getByRole('link', { name: 'Cluster file', exact: true }).click()
    const editor = page.getByRole('textbox', { name: 'Cluster file' })
    await editor.click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.insertText('# changed\n')
    await page.reload()
    await editor.getByText('# changed').waitFor()
    await page.getByRole('button', { name: 'Show the difference' }).click()
    await page.getByRole('textbox', { name: 'Present file' }).waitFor()
    assert.deepEqual(await bed.violations(), [])
    const now = bed.server.running.objects.get(Clusters, cluster)?.spec.build?.file ?? ''
    const change = async (file: string): Promise<void> => {
      const path = `/v3/clusters/${cluster}/build`
      const { status } = await bed.server.request('PUT', path, { token: bed.server.administrator, body: { file } })
      assert.equal(status, 200)
    }
    await change(`${now}# of another user\n`)
    await page.getByRole('button', { name: 'Save the cluster file' }).click()
    await page.getByText('The cluster file has changed since this page read it').waitFor()
    await change(now)
    await page.getByRole('button', { name: 'Show the difference' }).click()
    await page.getByRole('button', { name: 'Save the cluster file' }).click()
    const planned = page.getByRole('heading', { name: 'The plan has no steps' })
    await planned.or(page.getByText('Succeeded').nth(1)).first().waitFor()
    await eventually('the file is saved', () => {
      return bed.server.running.objects.get(Clusters, cluster)?.spec.build?.file?.startsWith('# changed') === true
    })
    await page.getByRole('link', { name: 'Cluster file', exact: true }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'kube_config_cluster.yml' }).click()
    assert.equal((await download).suggestedFilename(), 'kube_config_cluster.yml')
  })

  it('shows why it failed, and tries again or stops on request', async () => {
    const { page, server } = bed
    site.lose('2')
    const file = `nodes:\n- {address: 10.0.0.2, hostname_override: "2", user: root, role: [etcd, controlplane, worker]}\n${MORE}`
    const body = { displayName: 'broken', source: 'built', file, approval: 'Automatic' }
    const made = await server.request('POST', '/v3/clusters', { token: server.administrator, body })
    await bed.open(`/clusters/${made.body['cluster'].metadata.name}?tab=operations`)
    await page.getByRole('alert').getByText('no route to host').first().waitFor()
    await page.getByText(/The server tries again in \d+ s\./).waitFor()
    assert.deepEqual(await bed.violations(), [])
    await page.getByRole('button', { name: 'Try again now' }).click()
    await page.getByRole('button', { name: 'Cancel …' }).click()
    await page.getByRole('button', { name: 'Cancel the operation' }).click()
    await page.getByText('Cancelled').first().waitFor()
    site.lost.clear()
  })

  it('is closed to users without the right', async () => {
    const { server } = bed
    const { name } = await server.createUser('member')
    const page = await bed.openAs('member', '/build')
    await page.getByText('You may not create clusters').waitFor()
    const body = { role: 'cluster-member', user: name }
    await server.request('POST', `/v3/clusters/${cluster}/members`, { token: server.administrator, body })
    await bed.show(page, `/clusters/${cluster}?tab=file`)
    await page.getByText('This cluster has no such tab for you.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Operations' }).count(), 0)
    await page.context().close()
    assert.deepEqual(bed.troubles, [])
  })
})
