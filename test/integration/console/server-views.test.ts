/** Tests views of all clusters of a management server in a real browser: the search, and the commands of port forwards. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { importCluster } from '../management/downstream.ts'
import { whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

describe('views of a management server', { skip: whyNoBrowser }, () => {
  let bed: ServerBed
  before(async () => {
    bed = await startServerBed()
    await importCluster(bed.server, 'shop')
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] }
    const body = { metadata: { name: 'needle', namespace: 'default' }, spec }
    const path = '/k8s/clusters/local/api/v1/namespaces/default/services'
    const { status } = await bed.server.request('POST', path, { token: bed.server.administrator, body })
    assert.equal(status, 201)
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('search all clusters, and name those that cannot be searched', async () => {
    const { page } = bed
    await bed.open('/search?q=needle')
    await page
      .getByRole('region', { name: 'Services of local', exact: true })
      .getByRole('link', { name: 'needle' })
      .waitFor()
    await page.getByRole('region', { name: 'shop' }).getByText('The cluster cannot be searched').waitFor()
    await page.getByRole('status').getByText('1 object found').waitFor()
    assert.deepEqual(await bed.violations(), [])
  })

  it('show the kubectl command of a port forward, and give the kubeconfig', async () => {
    const { page } = bed
    await page.getByRole('link', { name: 'needle' }).click()
    const command = page.getByRole('region', { name: 'Command for port 80' })
    await command.getByText('port-forward -n default service/needle 8080:80').waitFor()
    await page.getByText('it cannot open a port on yours').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Forward/ }).count(), 0)
    assert.deepEqual(await bed.violations(), [])
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download the kubeconfig' }).click()
    const name = (await download).suggestedFilename()
    assert.match((await command.textContent()) ?? '', new RegExp(`--kubeconfig '?${name}'? `))
  })

  it('have no port forwards of their own', async () => {
    const { page } = bed
    await bed.open('/c/local/forwards')
    await page.getByRole('heading', { name: 'This server forwards no ports' }).waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
