/** Tests lists, the palette and lost connections in a real browser, on a cluster with simulated nodes. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { ConfigMaps, Namespaces, Pods } from '#apis/core/v1.ts'
import { defineKind } from '#client/custom-kind.ts'
import { eventually } from '#kits/lib/eventually.ts'
import type { KubeObject } from '#meta/object.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const MARKUP = '<img src=x onerror="alert(1)">'

/** Only the page watches the ConfigMaps of one namespace. */
const WATCH = { verb: 'watch', resource: 'configmaps', namespace: 'shop' } as const
const Gadgets = defineKind({ group: 'example.com', version: 'v1', kind: 'Gadget', plural: 'gadgets' })
const GADGETS = {
  metadata: { name: 'gadgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

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

  /** The page opens its watch a moment after it shows the list. */
  async function loseConnection(): Promise<void> {
    await bed.page.context().setOffline(true)
    const dropped = (): Promise<number> => {
      bed.dropConnections()
      return bed.page.getByText('Reconnecting').count()
    }
    await eventually(dropped, (count) => count > 0)
  }

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
    // A worker sorts the rows.
    await eventually(
      () => page.locator('.cell-name').allTextContents(),
      (names) => names.join() === 'web-2,web-1,api-1',
    )
  })

  it('open by keyboard alone', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('po shop')
    await page.locator('[role=option][aria-selected=true]', { hasText: 'in shop' }).waitFor()
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
    await loseConnection()
    await cluster.client.create(ConfigMaps, { metadata: { name: 'meanwhile', namespace: 'shop' } })
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'meanwhile' }).waitFor()
    await page.locator('.state-live').waitFor()
  })

  it('list again when the server no longer has the changes since the connection was lost', async () => {
    const { page, cluster } = bed
    const { client } = cluster
    const namespace = 'shop'
    for (const name of ['stays', 'goes']) await client.create(ConfigMaps, { metadata: { name, namespace } })
    await bed.open('/core/v1/configmaps?ns=shop')
    await page.getByRole('link', { name: 'goes' }).waitFor()
    await page.locator('.state-live').waitFor()
    await page.getByRole('searchbox').pressSequentially('-root')
    await page.getByRole('link', { name: 'kube-root-ca.crt' }).waitFor({ state: 'detached' })
    await loseConnection()
    await client.delete(ConfigMaps, { namespace, name: 'goes' })
    await client.create(ConfigMaps, { metadata: { name: 'comes', namespace } })
    await client.update(ConfigMaps, { metadata: { name: 'stays', namespace, labels: { is: 'changed' } } })
    cluster.inject({ type: 'api-error', ...WATCH, code: 410, reason: 'Expired', times: 1 })
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'comes' }).waitFor()
    await page.getByRole('link', { name: 'goes' }).waitFor({ state: 'detached' })
    await page.locator('.state-live').waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), '-root')
    await page.getByRole('searchbox').fill('is=changed')
    await page.getByRole('link', { name: 'stays' }).waitFor()
    await client.create(ConfigMaps, { metadata: { name: 'later', namespace, labels: { is: 'changed' } } })
    await page.getByRole('link', { name: 'later' }).waitFor()
  })

  it('list again for as long as the server refuses watches with 410', async () => {
    const { page, cluster } = bed
    const end = cluster.inject({ type: 'api-error', ...WATCH, code: 410, reason: 'Expired' })
    cluster.inject({ type: 'watch-cut', ...WATCH })()
    const make = (name: string): Promise<unknown> =>
      cluster.client.create(ConfigMaps, { metadata: { name, namespace: 'shop', labels: { is: 'changed' } } })
    // Without a watch, only a list has it.
    await make('by-list')
    await page.getByRole('link', { name: 'by-list' }).waitFor()
    end()
    await page.locator('.state-live').waitFor()
    await make('by-watch')
    await page.getByRole('link', { name: 'by-watch' }).waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), 'is=changed')
  })

  it('begin and end with their kind', async () => {
    const { page, cluster } = bed
    const link = page.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Gadgets' })
    await bed.open('/example.com/v1/gadgets')
    await page.getByText('The server refused the list of gadgets').waitFor()
    assert.equal(await link.count(), 0)
    const definition = await cluster.client.create(CustomResourceDefinitions, GADGETS)
    await link.waitFor()
    await page.getByText('There are no gadgets').waitFor()
    const metadata = { name: 'one', namespace: 'shop' }
    await cluster.client.create(Gadgets, { metadata, spec: { size: 7 } } as KubeObject)
    await page.getByRole('columnheader', { name: 'Size' }).waitFor()
    await page.getByRole('cell', { name: '7', exact: true }).waitFor()
    await cluster.client.delete(CustomResourceDefinitions, { name: definition.metadata.name ?? '' })
    await link.waitFor({ state: 'detached' })
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
