/** A management server in the test process with the real page of the console, and a real browser in front of it. */
import type { Page } from 'playwright-core'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { type ManagementBed, PASSWORD, startManagementBed } from '../management/bed.ts'
import { follow, goTo, launch, violationsOf } from './browser-bed.ts'

export interface ServerBed extends AsyncDisposable {
  readonly server: ManagementBed
  /** Of the administrator. */
  readonly page: Page
  /** A page of another user whose password is set, which shows a path below `/ui`. */
  openAs(username: string, path: string): Promise<Page>
  /** Shows the page of a path below `/ui`. */
  open(path: string): Promise<void>
  /** The same, on the page of another user. */
  show(page: Page, path: string): Promise<void>
  /** Dialogs, violations of the Content-Security-Policy and errors of scripts. */
  readonly troubles: readonly string[]
  /** The violations that axe finds in both themes, each with the first element. */
  violations(): Promise<readonly string[]>
}

/** Tests share the machine with others. */
const TIMEOUT_MS = 20_000

export async function startServerBed(
  upPrograms?: Parameters<typeof startManagementBed>[0],
  build?: Parameters<typeof startManagementBed>[1],
): Promise<ServerBed> {
  const closing = new AsyncDisposableStack()
  try {
    const consolePage = await ensureConsolePage()
    const server = closing.use(await startManagementBed(upPrograms, build, consolePage))
    const browser = await launch(closing)
    const troubles: string[] = []
    const show = (page: Page, path: string): Promise<void> => goTo(page, `${server.url}/ui${path}`)
    const openAs: ServerBed['openAs'] = async (username, path) => {
      // The server has its own authority.
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ignoreHTTPSErrors: true })
      await context.addCookies([await sessionCookie(server, username)])
      const page = await context.newPage()
      page.setDefaultTimeout(TIMEOUT_MS)
      follow(page, troubles)
      await show(page, path)
      return page
    }
    const page = await openAs('admin', '/')
    return {
      server,
      page,
      openAs,
      troubles,
      show,
      open: (path) => show(page, path),
      violations: async () => [...(await violationsOf(page, 'light')), ...(await violationsOf(page, 'dark'))],
      [Symbol.asyncDispose]: () => closing.disposeAsync(),
    }
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
}

async function sessionCookie(
  server: ManagementBed,
  username: string,
): Promise<{ readonly url: string; readonly name: string; readonly value: string }> {
  const login = await server.request('POST', '/v3-public/login', { body: { username, password: PASSWORD } })
  const [cookie = ''] = String([login.headers['set-cookie']].flat()[0]).split(';')
  const at = cookie.indexOf('=')
  return { url: server.url, name: cookie.slice(0, at), value: cookie.slice(at + 1) }
}
