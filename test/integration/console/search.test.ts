/** Tests the search over all kinds in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps } from '#apis/core/v1.ts'
import { RoleBindings } from '#apis/rbac/v1.ts'

import { type BrowserBed, checkFitsNarrowScreen, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

describe('the search over all kinds', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 })
    const labels = { app: 'needle' }
    const { client } = bed.cluster
    await client.create(Deployments, {
      metadata: { name: 'needle-web', namespace: 'default', labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'shop' }] } },
      },
    } as never)
    await client.create(ConfigMaps, { metadata: { name: 'needle', namespace: 'kube-public' } })
    await client.create(RoleBindings, {
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function checkAccess(): Promise<void> {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }

  it('is reached from the palette', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByText('All pods run or have completed.').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type('needle')
    await page.getByRole('option', { name: /Search objects for “needle”/ }).waitFor()
    await page.keyboard.press('Enter')
    await page
      .getByRole('region', { name: 'Config Maps', exact: true })
      .getByRole('link', { name: 'needle', exact: true })
      .waitFor()
    await page.getByRole('region', { name: 'Deployments', exact: true }).getByText('1/1 ready').waitFor()
    await page
      .getByRole('status')
      .getByText(/objects found$/)
      .waitFor()
    await checkAccess()
  })

  it('finds by label, and ends the search before', async () => {
    const { page } = bed
    await page.getByRole('searchbox').fill('app=needle')
    await page
      .getByRole('region', { name: 'Pods', exact: true })
      .getByRole('link', { name: /^needle-web-/ })
      .waitFor()
    await page.getByRole('link', { name: 'needle', exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('searchbox').fill('nothing-has-this-name')
    await page.getByText('No object fits.').waitFor()
    await checkAccess()
    await checkFitsNarrowScreen(page)
  })

  it('counts kinds that the user may not list', async () => {
    const page = await bed.openAs('ada', '/search?q=needle')
    await page.getByText(/^\d+ kinds you may not list$/).waitFor()
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
