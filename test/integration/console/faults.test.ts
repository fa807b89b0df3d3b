/** Tests the page in a real browser when its server is killed, its session ends, or its link is slow. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import type { Page } from 'playwright-core'

import { eventually } from '#kits/lib/eventually.ts'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { ownPage, sendTo } from './bed.ts'
import { follow, goTo, launch, OVERVIEW, whyNoBrowser } from './browser-bed.ts'
import { dataDir, linkIn, type Started, up } from './up-process.ts'

const MAPS = '/k8s/clusters/local/api/v1/namespaces/default/configmaps'

describe('the page of a server that fails', { skip: whyNoBrowser }, () => {
  const closing = new AsyncDisposableStack()
  const troubles: string[] = []
  let page: Page
  let port = 0
  let running: Started
  before(async () => {
    await ensureConsolePage()
    running = up('--console-port=0')
    const found = linkIn(await running.line(/^Console: /))
    port = found.port
    const browser = await launch(closing)
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
    follow(page, troubles)
    await goTo(page, found.link)
    await page.waitForURL(OVERVIEW)
  })
  after(async () => {
    await closing.disposeAsync()
    await running?.stop('SIGKILL')
  })

  const cookie = async (): Promise<string> =>
    (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')

  async function create(name: string): Promise<void> {
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { key: 'before' } })
    const headers = { ...ownPage(port), cookie: await cookie(), 'content-type': 'application/json' }
    const { status, text } = await sendTo(port, 'POST', MAPS, { headers, body })
    assert.equal(status, 201, text)
  }

  it('says that the server is away when it was killed, and goes on when it is back', async () => {
    await create('first')
    await goTo(page, `http://127.0.0.1:${port}/ui/c/local/core/v1/configmaps?ns=default`)
    await page.getByRole('link', { name: 'first' }).waitFor()
    await running.stop('SIGKILL')
    await page.getByText('Reconnecting').waitFor()
    await page.getByRole('link', { name: 'first' }).waitFor()
    running = up(`--console-port=${port}`)
    await running.line(/^Console: /)
    await create('second')
    await page.getByRole('link', { name: 'second' }).waitFor({ timeout: 40_000 })
    await page.locator('.state-live').waitFor()
  })

  it('keeps a text that is not yet applied when the session ends, and applies it after the next log-in', async () => {
    await goTo(page, `http://127.0.0.1:${port}/ui/c/local/core/v1/configmaps/default/first/yaml`)
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.locator('.cm-line', { hasText: 'key: before' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type('hand')
    await sendTo(port, 'POST', '/ui/logout', { headers: { ...ownPage(port), cookie: await cookie() } })
    // The broken watch may open the dialog first. It covers the button then.
    await page.getByRole('button', { name: 'Check and compare' }).dispatchEvent('click')
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    const other = await page.context().newPage()
    await other.goto(readFileSync(join(dataDir, 'console-link'), 'utf8').trim())
    await other.waitForURL(OVERVIEW)
    await other.close()
    await dialog.getByRole('button', { name: 'Go on' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.cm-line', { hasText: 'key: beforehand' }).first().waitFor()
    await page.getByRole('button', { name: 'Check and compare' }).click()
    await page.getByRole('button', { name: 'Take over and check again' }).click()
    await page.getByRole('button', { name: 'Apply' }).click()
    const applied = async (): Promise<string> =>
      (await sendTo(port, 'GET', `${MAPS}/first`, { headers: { cookie: await cookie() } })).text
    await eventually(applied, (text) => text.includes('beforehand'))
  })

  it('shows first rows and accepts a filter over a slow link', async () => {
    for (let at = 0; at < 40; at++) await create(`more-${at}`)
    const session = await page.context().newCDPSession(page)
    const bytesPerSecond = 25_000
    await session.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 400,
      downloadThroughput: bytesPerSecond,
      uploadThroughput: bytesPerSecond,
    })
    await page.goto(`http://127.0.0.1:${port}/ui/c/local/core/v1/configmaps?ns=default`, { waitUntil: 'commit' })
    await page.getByRole('link', { name: 'more-1', exact: true }).waitFor()
    await page.getByRole('searchbox').fill('more-39')
    await page.getByText(/^1 of/).waitFor()
    await session.detach()
  })

  it('has no error of a script', () => assert.deepEqual(troubles, []))
})
