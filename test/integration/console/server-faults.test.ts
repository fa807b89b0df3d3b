/** Tests pages of a management server in a real browser while the server is killed and comes back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'

import type { APIResponse, Locator, Page } from 'playwright-core'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { PASSWORD } from '../management/bed.ts'
import { follow, goTo, launch, whyNoBrowser } from './browser-bed.ts'
import { dir, start, type Started } from './up-process.ts'

const AWAY = 'The server cannot be reached'
const BACK_MS = 40_000

describe('pages of a management server that fails', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  const troubles: string[] = []
  let page: Page
  let url = ''
  let running: Started
  before(async () => {
    await ensureConsolePage()
    const greeting = await startServer('127.0.0.1:0')
    url = /https:\S+/.exec(greeting)?.[0] ?? ''
    const browser = await launch(closing)
    // The server has its own authority.
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ignoreHTTPSErrors: true })
    page = await context.newPage()
    page.setDefaultTimeout(20_000)
    follow(page, troubles)
    const link = /https:\S+first-login\S+/.exec(await running.line(/^Set the password/))?.[0] ?? ''
    await goTo(page, link)
    await page.getByLabel('New password').fill(PASSWORD)
    await page.getByLabel('Repeat the password').fill(PASSWORD)
    await page.getByRole('button').click()
    await page.getByRole('heading', { name: 'Clusters' }).waitFor()
  })
  after(async () => {
    await closing.disposeAsync()
    await running?.stop('SIGKILL')
  })

  /** Returns the line of its greeting. */
  function startServer(listen: string, dataDir = 'server'): Promise<string> {
    running = start('server', `--data-dir=${dir}/${dataDir}`, `--listen=${listen}`)
    return running.line(/^Ready in/)
  }

  const kill = (): Promise<void> => running.stop('SIGKILL')
  const comeBack = (): Promise<string> => startServer(new URL(url).host)
  const open = (path: string): Promise<void> => goTo(page, `${url}/ui${path}`)
  const dialog = (name: string): Locator => page.getByRole('dialog', { name })

  async function post(path: string, data: object): Promise<APIResponse> {
    const answer = await page.request.post(`${url}${path}`, { data, headers: { origin: url, 'x-hk': '1' } })
    assert.ok(answer.ok(), await answer.text())
    return answer
  }

  it('keep the clusters and the filter, and go on', async () => {
    await post('/v3/clusters', { displayName: 'shop' })
    await open('/?q=sh')
    await page.getByRole('article', { name: 'shop' }).waitFor()
    await kill()
    await page.getByText('Reconnecting').waitFor()
    await page.getByRole('article', { name: 'shop' }).waitFor()
    await page.getByRole('searchbox').fill('store')
    await page.getByText('The filter hides all 2 clusters').waitFor()
    await comeBack()
    await post('/v3/clusters', { displayName: 'store' })
    await page.getByRole('article', { name: 'store' }).waitFor({ timeout: BACK_MS })
    await page.locator('.state-live').waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), 'store')
  })

  it('keep a form that is half filled, say that the server is away, and send the form when it is back', async () => {
    await post('/v3/users', { username: 'jane', displayName: 'Jane', password: PASSWORD })
    await open('/members')
    await page.getByRole('button', { name: 'Add a member' }).click()
    await page.getByRole('combobox', { name: 'User', exact: true }).selectOption('jane (Jane)')
    await kill()
    await page.getByRole('combobox', { name: 'Role', exact: true }).selectOption('View Metrics')
    await dialog('Add a member').getByRole('button', { name: 'Give the role' }).click()
    await dialog('Add a member').getByRole('alert').getByText(AWAY).waitFor()
    await comeBack()
    await dialog('Add a member').getByRole('button', { name: 'Give the role' }).click()
    await page.getByRole('row').filter({ hasText: 'jane' }).getByText('View Metrics').waitFor()
  })

  it('keep a dialog of the list of clusters', async () => {
    await open('/')
    await page.getByRole('button', { name: 'Import a cluster …' }).click()
    await kill()
    await page.getByText('Reconnecting').waitFor()
    await page.getByLabel('Name').fill('late')
    await dialog('Import a cluster').getByRole('button', { name: 'Create' }).click()
    await dialog('Import a cluster').getByRole('alert').getByText(AWAY).waitFor()
    await comeBack()
    await page.locator('.state-live').waitFor({ timeout: BACK_MS })
    assert.equal(await page.getByLabel('Name').inputValue(), 'late')
    await dialog('Import a cluster').getByRole('button', { name: 'Create' }).click()
    await page.getByText('kubectl apply -f').waitFor()
  })

  it('open by themselves when the server is back', async () => {
    await open('/members')
    await page.getByRole('button', { name: 'Add a member' }).waitFor()
    await kill()
    // The browser has this page's part of the program, but not its data, and nothing of the next page.
    const pages = page.getByRole('navigation', { name: 'Pages' })
    await pages.getByRole('link', { name: 'Roles' }).click()
    await page.getByText('This part of the page cannot be loaded').waitFor()
    await pages.getByRole('link', { name: 'Members' }).click()
    await page.getByText('The members of this server cannot be loaded').waitFor()
    await comeBack()
    await page.getByRole('button', { name: 'Add a member' }).waitFor({ timeout: BACK_MS })
    await pages.getByRole('link', { name: 'Roles' }).click()
    await page.getByRole('heading', { name: 'Roles for a cluster' }).waitFor({ timeout: BACK_MS })
  })

  it('go on at a server that was restored in another place, without a new log-in', async () => {
    await open('/')
    await page.locator('.state-live').waitFor()
    await ended(start('server', 'backup', `${dir}/server.tar`, `--data-dir=${dir}/server`))
    await kill()
    await page.getByText('Reconnecting').waitFor()
    await ended(start('server', 'restore', `${dir}/server.tar`, `--data-dir=${dir}/elsewhere`))
    await startServer(new URL(url).host, 'elsewhere')
    await post('/v3/clusters', { displayName: 'after the restore' })
    await page.getByRole('article', { name: 'after the restore' }).waitFor({ timeout: BACK_MS })
    await page.getByRole('article', { name: 'shop', exact: true }).waitFor()
    await page.locator('.state-live').waitFor()
    await open('/users')
    await page.getByRole('link', { name: 'jane' }).waitFor()
  })

  async function ended({ child, output }: Started): Promise<void> {
    if (child.exitCode === null) await once(child, 'close')
    assert.equal(child.exitCode, 0, output())
  }

  it('have no error of a script', () => assert.deepEqual(troubles, []))
})
