/** A person in front of a management server: a browser of their own, in which they log in with their password. */
import type { Browser, Download, Locator, Page } from 'playwright-core'

import { follow } from '../../integration/console/browser-bed.ts'
import { PASSWORD } from '../management-server.ts'

const TIMEOUT_MS = 20_000

export interface Visitor {
  readonly page: Page
  /** Shows the page of a path below `/ui`. */
  readonly open: (path: string) => Promise<void>
  readonly dialog: (name: string) => Locator
  readonly row: (text: string) => Locator
  /** The status of each response that refused something. */
  readonly refusals: readonly number[]
  /** The file that a click saves. */
  readonly save: (button: Locator) => Promise<Download>
}

/** `troubles` gets dialogs, violations of the Content-Security-Policy and errors of scripts. */
export async function visit(
  browser: Browser,
  { url, username, troubles }: { readonly url: string; readonly username: string; readonly troubles: string[] },
): Promise<Visitor> {
  // The server has its own authority.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ignoreHTTPSErrors: true })
  const page = await context.newPage()
  page.setDefaultTimeout(TIMEOUT_MS)
  follow(page, troubles)
  const refusals: number[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) refusals.push(response.status())
  })
  await page.goto(`${url}/ui/`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { name: 'Clusters', exact: true }).waitFor()
  return {
    page,
    refusals,
    open: async (path) => void (await page.goto(`${url}/ui${path}`)),
    dialog: (name) => page.getByRole('dialog', { name }),
    row: (text) => page.getByRole('row').filter({ hasText: text }),
    save: async (button) => {
      const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
      return download
    },
  }
}
