/** Tests the charts of CPU and memory in a real browser, on simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { Pods } from '#apis/core/v1.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { type BrowserBed, checkFitsNarrowScreen, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const resources = { requests: { cpu: '500m', memory: '512Mi' }, limits: { cpu: '1', memory: '1Gi' } }
const spec = {
  containers: [
    { name: 'app', image: 'shop', resources },
    { name: 'side', image: 'shop' },
  ],
}

const METRICS = '**/apis/metrics.k8s.io/**'
const MARKUP = '<img src=x onerror="alert(1)">'

describe('the use of CPU and memory', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 2 })
    const labels = { app: 'web' }
    await bed.cluster.client.create(Deployments, {
      metadata: { name: 'web', namespace: 'default' },
      spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    } as never)
    await bed.cluster.client.create(Pods, { metadata: { name: 'shop', namespace: 'default' }, spec } as never)
    // The page reads the requests of pods once a minute.
    await eventually(
      () => bed.cluster.client.list(Pods, { namespace: 'default', fieldSelector: 'status.phase=Running' }),
      ({ items }) => items.length === 4,
    )
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function checkAccess(): Promise<void> {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }

  it('is on the overview, with each node', async () => {
    const { page } = bed
    await bed.open('')
    const section = page.getByRole('region', { name: 'Use', exact: true })
    await section.getByRole('img', { name: /^CPU from .*: Use / }).waitFor()
    await section
      .getByText(/^Requests$/)
      .first()
      .waitFor()
    await section.getByRole('link', { name: /0$/ }).waitFor()
    await section.getByText('Values of CPU').click()
    await section.getByRole('columnheader', { name: 'Time' }).waitFor()
    await checkAccess()
  })

  it('is on pages of pods, with requests and limits of containers', async () => {
    const { page } = bed
    await bed.open('/core/v1/pods/default/shop')
    await page.getByRole('region', { name: 'Use of containers' }).getByText('250m of 1 (25 %)').waitFor()
    await page.getByRole('img', { name: /^Memory from .*: app 256Mi.*; side 10Mi/ }).waitFor()
    await checkAccess()
  })

  it('is the sum of the pods of a workload, and of a node', async () => {
    const { page } = bed
    await bed.open('/apps/v1/deployments/default/web')
    await page.getByRole('region', { name: 'Use', exact: true }).getByText('1.5 (50 % used)').waitFor()
    await bed.open('/core/v1/nodes/_/node-0')
    await page.getByRole('region', { name: 'Use', exact: true }).getByText('Allocatable').first().waitFor()
    await checkAccess()
  })

  it('fits on a page of 320 pixels', async () => {
    const { page } = bed
    for (const path of ['', '/core/v1/pods/default/shop']) {
      await bed.open(path)
      await page.getByRole('img', { name: /^Memory/ }).waitFor()
      await checkFitsNarrowScreen(page)
    }
  })

  it('names the program to install where the metrics API is missing', async () => {
    const { page } = bed
    await page.route(METRICS, (route) => route.fulfill({ status: 404, body: '404 page not found' }))
    await bed.open('/core/v1/pods/default/shop')
    await page.getByText('This cluster has no metrics API').waitFor()
    await page.getByRole('button', { name: /Copy/ }).first().waitFor()
    await checkAccess()
    await page.unroute(METRICS)
  })

  it('shows absurd answers as nothing, and names as text', async () => {
    const { page } = bed
    const containers = [
      { name: MARKUP, usage: { cpu: '9'.repeat(50), memory: '1e30' } },
      { name: 'b', usage: { cpu: '1e99999999', memory: '-1' } },
      null,
    ]
    await page.route(METRICS, (route) => route.fulfill({ json: { containers } }))
    await bed.open('/core/v1/pods/default/shop')
    const section = page.getByRole('region', { name: 'Use', exact: true })
    await section.getByText(MARKUP).first().waitFor()
    await section.getByText('8Ei').first().waitFor()
    assert.equal(await page.locator('img').count(), 0)
    await checkAccess()
    await page.unroute(METRICS)
  })

  it('says that a user may not read it', async () => {
    const page = await bed.openAs('eve', '')
    await page
      .getByText(/metrics API/)
      .first()
      .waitFor()
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
