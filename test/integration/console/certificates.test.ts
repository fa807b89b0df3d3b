/** Tests the page of certificates in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { ValidatingWebhookConfigurations } from '#apis/admissionregistration/v1.ts'
import { Namespaces, Secrets } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const DAY_MS = 24 * 3_600_000
const MARKUP = '<img src=x onerror="alert(1)">'
const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('certificates in the console', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  const authority = createAuthority({ commonName: MARKUP }, { clock: realClock, random: secureRandom })
  const names = { dns: ['shop.example'], ips: ['10.1.2.3'] }
  const issued = authority.issue({ commonName: 'shop', purpose: 'server', names, validityMs: 10.5 * DAY_MS })
  before(async () => {
    bed = await startBrowserBed()
    const { client } = bed.cluster
    for (const namespace of ['shop', 'copy']) {
      await client.create(Namespaces, { metadata: { name: namespace } })
      await client.create(Secrets, {
        metadata: { name: 'shop-tls', namespace },
        type: 'kubernetes.io/tls',
        data: { 'tls.crt': base64(issued.certificatePem), 'tls.key': base64(issued.keyPem) },
      })
    }
    await client.create(ValidatingWebhookConfigurations, {
      metadata: { name: 'shop-check' },
      webhooks: [
        {
          name: 'check.shop.example',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Ignore',
          clientConfig: { url: 'https://127.0.0.1:1/', caBundle: base64(authority.certificatePem) },
          rules: [],
        },
      ],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  it('are sorted by their end, with a warning, and lead to their objects', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByRole('link', { name: 'Certificates', exact: true }).click()
    const rows = page.locator('tbody tr')
    await rows.first().getByText('Ends in 10 days').waitFor()
    const first = (await rows.first().textContent()) ?? ''
    for (const text of ['CN=shop', 'shop.example, 10.1.2.3', 'shop-tls', 'tls.crt', 'and 1 copy'])
      assert.ok(first.includes(text), `${text} in ${first}`)
    await page.getByText('0 ended, 1 ends within 30 days').waitFor()
    await rows.filter({ hasText: 'check.shop.example' }).getByText(`CN=`).first().waitFor()
    await rows.filter({ hasText: 'kube-root-ca.crt' }).first().waitFor()
    await rows.filter({ hasText: 'client-ca-file' }).first().waitFor()
    assert.ok(!(await page.content()).includes('PRIVATE KEY'))
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
    await page.getByRole('searchbox').fill('check.shop')
    await page.getByText('1 certificate.').waitFor()
    await page.getByRole('searchbox').fill('zzz')
    await page.getByText('The filter hides all certificates').waitFor()
    await page.getByRole('searchbox').fill('shop-tls')
    await page.getByRole('link', { name: 'Secret copy/shop-tls' }).click()
    await page.getByRole('heading', { name: 'shop-tls' }).waitFor()
  })

  it('stay while the server is away', async () => {
    const { page } = bed
    await bed.open('/certificates')
    await page.getByText('0 ended, 1 ends').waitFor()
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Read again' }).click()
    await page.getByText('The server cannot be reached. This is an earlier state.').waitFor()
    await page.getByText('Ends in 10 days').waitFor()
    await page.context().setOffline(false)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('The server cannot be reached').waitFor({ state: 'detached' })
  })

  it('are refused in words to users without rights', async () => {
    const page = await bed.openAs('jane', '/certificates')
    await page.getByText('You may see no certificates here').waitFor()
    await page.getByText('cannot list resource "secrets"').waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
