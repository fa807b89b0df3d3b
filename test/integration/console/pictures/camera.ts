/** Takes pictures of a page in both themes, on a wide and on a narrow screen. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import type { Page } from 'playwright-core'

const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
] as const
const THEMES = ['light', 'dark'] as const

/** Shows a page, waits until it is complete, and takes it. */
export type Take = (name: string, page: Page, show: () => Promise<void>) => Promise<void>

type Camera = (page: Page, name: string) => Promise<void>

/** Writes `<name>-<theme>-<width>.png` into the folder. */
export function createCamera(folder: string): Camera {
  mkdirSync(folder, { recursive: true })
  return async (page, name) => {
    for (const size of SIZES) {
      await page.setViewportSize(size)
      for (const colorScheme of THEMES) {
        await page.emulateMedia({ colorScheme })
        await page.screenshot({
          path: join(folder, `${name}-${colorScheme}-${size.width}.png`),
          animations: 'disabled',
        })
      }
    }
    await page.setViewportSize(SIZES[0])
    await page.emulateMedia({ colorScheme: 'light' })
    process.stdout.write(`${name}\n`)
  }
}

/** The last parts of the addresses to which the top of the navigation leads. */
export async function viewsIn(page: Page): Promise<readonly string[]> {
  const links = page.locator('.side-top a')
  await links.nth(1).waitFor()
  const paths = await links.evaluateAll((all) => all.map((one) => (one as unknown as { pathname: string }).pathname))
  // The first one is the overview.
  return paths.slice(1).map((path) => path.split('/').at(-1) ?? '')
}
