/** Tests the search over twenty connected clusters in a real browser: what it finds, and clusters that go away. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { connected, type EchoCluster, importCluster, startEchoCluster } from '../management/downstream.ts'
import { checkFitsNarrowScreen, whyNoBrowser } from './browser-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const CLUSTERS = Array.from({ length: 20 }, (_none, at) => `shop-${at + 1}`)

describe('the search over twenty clusters', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  const agents: (() => Promise<void>)[] = []
  let bed: ServerBed
  before(async () => {
    const plane = await startControlPlane()
    closing.defer(() => plane.stop())
    const metadata = { name: 'needle-shop', namespace: 'default' }
    const made = await plane.request('POST', '/api/v1/namespaces/default/configmaps', { metadata })
    assert.equal(made.status, 201)
    bed = closing.use(await startServerBed())
    for (const name of CLUSTERS) {
      const echo = closing.use(await startClusterLike(plane, name))
      const { id, token } = await importCluster(bed.server, name)
      agents.push(bed.server.runAgent(echo.kubeconfig, token))
      await connected(bed.server, id)
    }
  })
  after(() => closing.disposeAsync())

  it('finds an object of each', async () => {
    const { page } = bed
    await bed.open('/search?q=needle')
    for (const name of CLUSTERS) await page.getByRole('link', { name: `needle-${name}`, exact: true }).waitFor()
    await page.getByRole('status').getByText('20 objects found').waitFor()
    assert.deepEqual(await bed.violations(), [])
    await checkFitsNarrowScreen(page)
  })

  it('ends the search before, and finds one object among twenty clusters', async () => {
    const { page } = bed
    await page.getByRole('searchbox').fill('needle-shop-17')
    await page.getByRole('status').getByText('1 object found').waitFor()
    await page.getByRole('link', { name: 'needle-shop-17', exact: true }).waitFor()
  })

  it('names the clusters that are away, and finds the rest', async () => {
    const { page } = bed
    await agents[0]?.()
    await bed.open('/search?q=needle')
    await page
      .getByRole('region', { name: 'shop-1', exact: true })
      .getByText('The cluster cannot be searched')
      .waitFor()
    await page.getByRole('status').getByText('19 objects found').waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})

const DISCOVERY = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const NO_GROUPS = JSON.stringify({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', items: [] })

/** A cluster that has the objects of the core group of the other one. `needle-shop` has the name of the cluster. */
async function startClusterLike(plane: ControlPlane, name: string): Promise<EchoCluster> {
  const echo = await startEchoCluster()
  echo.answer = ({ url = '', headers }, response) => {
    if (url.startsWith('/apis?') || url === '/apis') {
      return void response.writeHead(200, { 'content-type': DISCOVERY }).end(NO_GROUPS)
    }
    const copy = async (): Promise<void> => {
      const {
        status,
        headers: found,
        text,
      } = await plane.request('GET', url, undefined, {
        accept: headers.accept ?? '*/*',
      })
      response.writeHead(status, { 'content-type': found.get('content-type') ?? '' })
      response.end(text.replaceAll('needle-shop', `needle-${name}`))
    }
    copy().catch(() => response.destroy())
  }
  return echo
}
