/**
 * Tests the shell of a container in a real browser: its size, texts of other languages, Ctrl-C and its end. The API
 * server leads to a fake kubelet with a real shell.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Page } from 'playwright-core'

import type { ConsoleTarget } from '#component/console/one-cluster/cluster-route.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { addNode, addPod, type ConnectedPlane, startConnectedPlane } from '../connect/connected-plane.ts'
import { startConsoleBed } from './bed.ts'
import { follow, goTo, launch, OVERVIEW, violationsOf, whyNoBrowser } from './browser-bed.ts'
import { answerWithShell, whyNoTerminal } from './pty-kubelet.ts'

describe('the shell of a container', { skip: whyNoBrowser || whyNoTerminal }, () => {
  const closing = new AsyncDisposableStack()
  const troubles: string[] = []
  let page: Page
  before(async () => {
    const connected = closing.use(await startConnectedPlane())
    connected.kubelet.answer = answerWithShell
    await addRunningPod(connected)
    const target = targetOf(connected, closing)
    const bed = closing.use(await startConsoleBed({ target, pageFolder: await ensureConsolePage() }))
    const browser = await launch(closing)
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
    follow(page, troubles)
    await goTo(page, bed.console.link)
    await page.waitForURL(OVERVIEW)
    await goTo(page, `http://127.0.0.1:${bed.port}/ui/c/local/core/v1/pods/default/web/shell`)
    await page.getByRole('status').getByText('Connected').waitFor()
  })
  after(() => closing.disposeAsync())

  const screen = (): Promise<string> => page.locator('.xterm-accessibility').innerText()
  const shows = (pattern: RegExp): Promise<string> => eventually(screen, (text) => pattern.test(text))
  async function enter(line: string): Promise<void> {
    await page.keyboard.type(line)
    await page.keyboard.press('Enter')
  }
  /** As the program in the container sees it. */
  async function size(): Promise<readonly [rows: number, columns: number]> {
    await enter('clear; stty size')
    const [, rows, columns] = /^(\d+) (\d+)$/m.exec(await shows(/^\d+ \d+$/m)) ?? []
    return [Number(rows), Number(columns)]
  }

  it('has the focus, and the size of the page', async () => {
    await shows(/\$ $/m)
    const [rows, columns] = await size()
    assert.ok(rows > 20 && columns > 80, `${rows} rows, ${columns} columns`)
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await violationsOf(page, theme), [])
    await page.locator('.xterm-helper-textarea').focus()
    await page.setViewportSize({ width: 700, height: 500 })
    await eventually(size, ([newRows, newColumns]) => newRows < rows && newColumns < columns)
    await page.setViewportSize({ width: 1280, height: 800 })
    await eventually(size, ([newRows, newColumns]) => newRows === rows && newColumns === columns)
  })

  it('sends and shows texts in UTF-8', async () => {
    const session = await page.context().newCDPSession(page)
    await page.keyboard.type('clear; printf "')
    // Keys of a German keyboard.
    for (const key of 'Grüße') {
      await session.send('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key })
      await session.send('Input.dispatchKeyEvent', { type: 'keyUp', key })
    }
    // An input method.
    for (const text of [' 漢字', ' 🙂']) {
      await session.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length })
      await session.send('Input.insertText', { text })
    }
    await enter(String.raw`\n"; printf Grü | wc -c`)
    await shows(/^Grüße 漢字 🙂$/mu)
    await session.detach()
  })

  it('interrupts a program with Ctrl-C', async () => {
    await enter('clear; echo sleeping; sleep 1000')
    await shows(/^sleeping$/m)
    await page.keyboard.press('Control+c')
    await enter('echo "after $((20 + 3))"')
    await shows(/^after 23$/m)
  })

  it('completes with Tab, which stays in the terminal', async () => {
    await page.keyboard.type('clear; ech')
    await page.keyboard.press('Tab')
    await page.keyboard.type('completed')
    await page.keyboard.press('Enter')
    await shows(/^completed$/m)
  })

  it('says how it ended, and connects again', async () => {
    await enter('exit 3')
    await page.getByRole('status').getByText('command terminated with exit code 3').waitFor()
    await page.getByRole('button', { name: 'Connect again' }).click()
    await page.getByRole('status').getByText('Connected').waitFor()
    await shows(/\$ $/m)
    await enter('exit')
    await page.getByRole('status').getByText('The command has ended').waitFor()
    assert.deepEqual(troubles, [])
  })
})

async function addRunningPod(connected: ConnectedPlane): Promise<void> {
  await addNode(connected, 'one')
  await addPod(connected, { name: 'web', node: 'one' })
  const state = { running: { startedAt: '2026-01-01T00:00:00Z' } }
  const container = { name: 'c', image: 'x', imageID: 'x', ready: true, restartCount: 0, started: true, state }
  const status = { phase: 'Running', containerStatuses: [container] }
  const path = '/api/v1/namespaces/default/pods/web/status'
  const type = { 'content-type': 'application/merge-patch+json' }
  assert.equal((await connected.plane.request('PATCH', path, { status }, type)).status, 200)
}

function targetOf({ plane }: ConnectedPlane, closing: AsyncDisposableStack): ConsoleTarget {
  const client = createHttpClient({ clock: realClock, tls: { ca: plane.ca }, http1Only: true })
  closing.defer(() => client.close())
  const authorization = `Bearer ${plane.token}`
  return {
    server: plane.url,
    client: {
      request: (request) => client.request({ ...request, headers: { ...request.headers, authorization } }),
      upgrade: (request) => client.upgrade({ ...request, headers: { ...request.headers, authorization } }),
    },
  }
}
