/** Tests lists, the palette and lost connections in a real browser, on a cluster with simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ConfigMaps, Namespaces, Pods } from '#apis/core/v1.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'

describe('lists of the console', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    const { client } = bed.cluster
    await client.create(Namespaces, { metadata: { name: 'shop' } })
    for (const name of ['web-1', 'web-2', 'api-1']) {
      await client.create(Pods, {
        metadata: { name, namespace: 'shop', labels: { app: name.slice(0, 3) } },
        spec: { containers: [{ name: 'app', image: 'shop' }] },
      } as never)
    }
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('show the columns of kubectl, and new and deleted objects at once', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/pods')
    await page.getByRole('link', { name: 'web-1' }).waitFor()
    await page.getByRole('columnheader', { name: 'Restarts' }).waitFor()
    await cluster.client.create(Pods, {
      metadata: { name: 'late', namespace: 'shop' },
      spec: { containers: [{ name: 'app', image: 'shop' }] },
    } as never)
    await page.getByRole('link', { name: 'late' }).waitFor()
    await cluster.client.delete(Pods, { namespace: 'shop', name: 'late' }, { gracePeriodSeconds: 0 })
    await page.getByRole('link', { name: 'late' }).waitFor({ state: 'detached' })
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  })

  it('filter and sort, with the state in the address', async () => {
    const { page } = bed
    await page.getByRole('searchbox').fill('app=web -web-2')
    await page.getByText('1 of 3').waitFor()
    await page.reload()
    await page.getByText('1 of 3').waitFor()
    await page.getByRole('searchbox').fill('nothing fits')
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.getByRole('button', { name: 'Name', exact: true }).click()
    await page.locator('th[aria-sort=descending]').waitFor()
    const names = await page.locator('.cell-name').allTextContents()
    assert.deepEqual(names, ['web-2', 'web-1', 'api-1'])
  })

  it('open by keyboard alone', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('po shop')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'api-1' }).waitFor()
    assert.match(page.url(), /pods\?ns=shop$/)
    await page.getByRole('region', { name: 'Objects' }).focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'api-1' }).waitFor()
  })

  it('say that the connection is lost, and recover by themselves', async () => {
    const { page, cluster } = bed
    await bed.open('/core/v1/configmaps?ns=shop')
    await page.getByRole('link', { name: 'kube-root-ca.crt' }).waitFor()
    await page.context().setOffline(true)
    bed.dropConnections()
    await page.getByText('Reconnecting').waitFor()
    await cluster.client.create(ConfigMaps, { metadata: { name: 'meanwhile', namespace: 'shop' } })
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'meanwhile' }).waitFor()
    await page.locator('.state-live').waitFor()
  })

  it('draw markup in objects as text', async () => {
    const { page, cluster } = bed
    await cluster.client.create(ConfigMaps, {
      metadata: { name: 'hostile', namespace: 'shop', labels: { tier: 'x' }, annotations: { note: MARKUP } },
      data: { 'page.html': MARKUP },
    })
    await bed.open('/core/v1/configmaps/shop/hostile')
    await page.getByText(MARKUP).first().waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
