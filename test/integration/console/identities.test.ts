/** Tests log-in with a password, LDAP and OpenID in a real browser, and log-out in all browsers at once. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Page } from 'playwright-core'

import { PASSWORD } from '../management/bed.ts'
import { follow, goTo, violationsOf, whyNoBrowser } from './browser-bed.ts'
import { addIdentityProviders } from './identity-bed.ts'
import { type ServerBed, startServerBed } from './server-bed.ts'

const TIMEOUT_MS = 20_000

describe('identity providers in the console', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  let bed: ServerBed
  let troubles: string[]
  before(async () => {
    bed = closing.use(await startServerBed())
    troubles = []
    await addIdentityProviders(bed.server, closing)
    await bed.server.createUser('jane')
    for (const group of ['corp:devs', 'idp:staff']) {
      const body = { role: 'users-manage', group }
      await bed.server.request('POST', '/v3/members', { token: bed.server.administrator, body })
    }
  })
  after(() => closing.disposeAsync())

  /** A browser of its own that nobody has logged in. */
  async function newBrowser(path: string): Promise<Page> {
    const context = await bed.page.context().browser()?.newContext({ ignoreHTTPSErrors: true })
    if (context === undefined) throw new Error('The browser was closed')
    const page = await context.newPage()
    page.setDefaultTimeout(TIMEOUT_MS)
    follow(page, troubles)
    await goTo(page, `${bed.server.url}/ui${path}`)
    return page
  }

  async function logIn(page: Page, provider: string, [username, password]: readonly [string, string]): Promise<void> {
    await page.getByLabel('Account of').selectOption(provider)
    await page.getByLabel('Username').fill(username)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Log in' }).click()
  }

  async function openAsMary(path: string): Promise<Page> {
    const page = await newBrowser(path)
    await page.getByRole('link', { name: 'Log in with Corp' }).click()
    await page.getByRole('button', { name: 'I am Mary' }).click()
    return page
  }

  it('log in by LDAP, with the rights of the groups, and refuse a wrong password in words', async () => {
    const page = await newBrowser('/users')
    await page.getByRole('link', { name: 'Log in with Corp' }).waitFor()
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await violationsOf(page, theme), [])
    await logIn(page, 'corp', ['jürgen', 'wrong'])
    await page.getByRole('alert').waitFor()
    await logIn(page, 'corp', ['jürgen', 'password of jürgen'])
    await page.getByRole('heading', { name: 'Users', exact: true }).waitFor()
    await page.getByTitle('Your account').getByText('Jürgen Groß').waitFor()
    await page.context().close()
  })

  it('log in by OpenID, and go on at the page that was opened', async () => {
    const page = await openAsMary('/users?q=ma')
    await page.waitForURL(/\/ui\/users\?q=ma$/)
    await page.getByRole('heading', { name: 'Users', exact: true }).waitFor()
    await page.getByRole('row').filter({ hasText: 'Mary' }).first().waitFor()
    await page.context().close()
  })

  it('log out in this browser only', async () => {
    const [page, other] = [await openAsMary('/account'), await openAsMary('/users')]
    await other.getByRole('heading', { name: 'Users', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Log out', exact: true }).click()
    await page.getByRole('link', { name: 'Log in with Corp' }).waitFor()
    await other.reload()
    await other.getByRole('heading', { name: 'Users', exact: true }).waitFor()
    for (const one of [page, other]) await one.context().close()
  })

  for (const way of ['a password', 'LDAP', 'OpenID'] as const) {
    it(`log out everywhere after a log-in by ${way}`, async () => {
      const open = async (path: string): Promise<Page> => {
        if (way === 'OpenID') return openAsMary(path)
        const page = await newBrowser(path)
        if (way === 'LDAP') await logIn(page, 'corp', ['jürgen', 'password of jürgen'])
        else await logIn(page, 'local', ['jane', PASSWORD])
        return page
      }
      const [page, other] = [await open('/account'), await open('/')]
      await other.getByRole('heading', { name: 'Clusters', exact: true }).waitFor()
      await page.getByRole('button', { name: 'Log out everywhere' }).click()
      const dialog = page.getByRole('dialog', { name: 'Log out everywhere' })
      await dialog.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Username').waitFor()
      // The watches of the other browser end, and it notices by itself.
      await other.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
      for (const one of [page, other]) await one.context().close()
    })
  }

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual([...bed.troubles, ...troubles], [])
  })
})
