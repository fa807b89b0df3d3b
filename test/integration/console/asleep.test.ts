/** Tests pages of a computer that was asleep, in a real browser: what they show, and what stays of what was typed. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { createVirtualClock, realClock, type VirtualClock } from '#lib/clock.ts'

import { type BrowserBed, OVERVIEW, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MINUTE_MS = 60_000
const namespace = 'default'

describe('a page after an hour of sleep', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  let sessions: VirtualClock
  before(async () => {
    sessions = createVirtualClock(realClock.now())
    bed = await startBrowserBed({}, undefined, { ...realClock, now: () => sessions.now() })
    await bed.page.clock.install()
    const metadata = { name: 'settings', namespace }
    await bed.cluster.client.create(ConfigMaps, { metadata, data: { mode: 'fast' } })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  /** Timers do not run meanwhile, connections break, and the sessions of the server get older. */
  async function sleepFor(minutes: number, meanwhile: () => Promise<unknown>): Promise<void> {
    const { page } = bed
    await page.context().setOffline(true)
    bed.dropConnections()
    await meanwhile()
    await sessions.advance(minutes * MINUTE_MS)
    await page.clock.fastForward(minutes * MINUTE_MS)
    await page
      .getByText(/Reconnecting|This is the state of/)
      .first()
      .waitFor()
    await page.context().setOffline(false)
  }

  it('goes on by itself while the session is valid, with the changes and ages of now', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps?ns=default')
    await page.getByRole('link', { name: 'settings' }).waitFor()
    await page.locator('.state-live').waitFor()
    await page.getByRole('searchbox').fill('-root')
    await sleepFor(50, () => cluster.client.create(ConfigMaps, { metadata: { name: 'meanwhile', namespace } }))
    await page.getByRole('link', { name: 'meanwhile' }).waitFor()
    await page.locator('.state-live').waitFor()
    await page.getByRole('row').filter({ hasText: 'settings' }).getByText(/^5\dm/).waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), '-root')
  })

  it('asks for a log-in after the session has ended, and keeps the text that was typed', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps/default/settings/yaml')
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'mode: fast' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type('er')
    const live = await cluster.client.get(ConfigMaps, { namespace, name: 'settings' })
    const metadata = { ...live.metadata, labels: { by: 'another' } }
    await sleepFor(61, () => cluster.client.update(ConfigMaps, { ...live, metadata }))
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    const other = await page.context().newPage()
    await other.goto(bed.newLink())
    await other.waitForURL(OVERVIEW)
    await other.close()
    await dialog.getByRole('button', { name: 'Go on' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.cm-line', { hasText: 'mode: faster' }).first().waitFor()
    // The change of the other person is merged into the text.
    await page.locator('.cm-line', { hasText: 'by: another' }).first().waitFor()
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page
      .getByRole('button', { name: 'Apply', exact: true })
      .or(page.getByText('owns data.mode'))
      .first()
      .waitFor()
    const takeOver = page.getByRole('button', { name: 'Take over and check again' })
    if ((await takeOver.count()) > 0) await takeOver.click()
    await page.getByRole('button', { name: 'Apply', exact: true }).click()
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor()
    const { data, metadata: found } = await cluster.client.get(ConfigMaps, { namespace, name: 'settings' })
    assert.deepEqual([data, found.labels], [{ mode: 'faster' }, { by: 'another' }])
    assert.deepEqual(bed.troubles, [])
  })
})
