/** Tests the time line of a cluster's events in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Events, Pods } from '#apis/core/v1.ts'

import { type BrowserBed, checkFitsNarrowScreen, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'

describe('the time line of events', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    await bed.cluster.client.create(Pods, {
      metadata: { name: 'crashing', namespace: 'default', annotations: { 'simulated.hyperkube.io/crash': '1s' } },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function checkAccess(): Promise<void> {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }

  it('groups them by minute and object, live, and marks warnings', async () => {
    const { page } = bed
    await bed.open('/events')
    const lines = page.getByRole('region', { name: 'Events by minute' })
    await lines.getByRole('link', { name: 'Pod crashing' }).first().waitFor()
    await lines.getByText('Back-off restarting failed container').first().waitFor()
    await page.getByRole('img', { name: /^The last 60 minutes: \d+ events, \d+ of them warnings$/ }).waitFor()
    await checkAccess()
  })

  it('filters by warnings, reason and kind, in the address', async () => {
    const { page } = bed
    const lines = page.getByRole('region', { name: 'Events by minute' })
    await page.getByLabel('Warnings only').check()
    await lines.getByText('Back-off restarting failed container').first().waitFor()
    await lines.getByText('Scheduled', { exact: true }).first().waitFor({ state: 'detached' })
    await page.getByLabel('Warnings only').uncheck()
    await page.getByRole('combobox', { name: 'Reason' }).selectOption('Scheduled')
    await lines.getByText('Scheduled', { exact: true }).first().waitFor()
    await page.waitForURL(/reason=Scheduled/)
    await page.getByRole('combobox', { name: 'Kind' }).selectOption('Node')
    await page.getByText('No event fits the filter').waitFor()
    await checkAccess()
  })

  it('shows hostile events as text', async () => {
    const { page, cluster } = bed
    await cluster.client.create(Events, {
      metadata: { name: 'hostile', namespace: 'default' },
      involvedObject: { kind: MARKUP, name: MARKUP, namespace: 'default' },
      reason: MARKUP,
      message: MARKUP.repeat(20),
      type: 'Warning',
    })
    await bed.open('/events?type=Warning')
    await page.getByText(`${MARKUP} ${MARKUP}`).waitFor()
    assert.equal(await page.locator('img').count(), 0)
    await checkFitsNarrowScreen(page)
    await checkAccess()
  })

  it('says that a user may not list events', async () => {
    const page = await bed.openAs('eve', '/events')
    await page.getByText('The events cannot be shown').waitFor()
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
