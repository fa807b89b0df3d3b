/** A cluster in the test process, its console, and a real browser in front of it. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'

import { type Browser, chromium, type Page } from 'playwright-core'

import { userConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { type ConsolePort, openConsolePort } from '#component/console/one-cluster/port.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/public-api.ts'

import { ensureConsolePage } from '../../../scripts/console-bundle.ts'
import { USER } from './bed.ts'
import type { FakePods } from './pod-ports.ts'

/** What Chromium itself prints about a refused request and about a connection that a server closes or resets. */
const NETWORK_FAILURE =
  /^Failed to load resource|^WebSocket connection to '[^']*' failed: (Error during WebSocket handshake: |Error in connection establishment: |HTTP Authentication failed|Connection closed before |WebSocket is closed before )/

/** The page goes on there after a log-in. */
export const OVERVIEW: RegExp = /\/ui\/c\/[^/]+$/
const CHROMIUM = '/usr/bin/chromium'
export const whyNoBrowser: string | false = existsSync(CHROMIUM) ? false : 'there is no chromium: install it'

export interface BrowserBed extends AsyncDisposable {
  readonly cluster: TestCluster
  /** Of an administrator. */
  readonly page: Page
  /** A page of another user, which shows a path below `/ui/c/local`. */
  openAs(user: string, path: string): Promise<Page>
  /** Of the page, without its path: `http://127.0.0.1:6444`. */
  readonly origin: string
  /** Dialogs, violations of the Content-Security-Policy and errors of scripts. */
  readonly troubles: readonly string[]
  /** Shows the page of a path below `/ui/c/local`. */
  open(path: string): Promise<void>
  /** Logs a browser in, once. */
  newLink(): string
  /** Breaks the WebSockets of the page. */
  dropConnections(): void
  /** The violations that axe finds, each with the first element. */
  violations(theme: 'light' | 'dark'): Promise<readonly string[]>
}

interface LoggedIn {
  readonly page: Page
  readonly origin: string
  readonly console: OpenConsole
}

interface OpenConsole extends ConsolePort {
  /** Of its WebSockets. */
  readonly sockets: ReadonlySet<Duplex>
}

/** `pods` takes port forwards: simulated nodes run no programs. `clock` is that of the console, for its sessions. */
export async function startBrowserBed(
  options: ClusterOptions = {},
  pods?: FakePods,
  clock: Clock = realClock,
): Promise<BrowserBed> {
  const closing = new AsyncDisposableStack()
  try {
    const cluster = closing.use(await startCluster(options))
    await ensureConsolePage()
    const browser = await launch(closing)
    const troubles: string[] = []
    const logIn = async (user?: string): Promise<LoggedIn> => {
      const console = await openConsole({ cluster, closing, pods, clock }, user)
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
      const page = await context.newPage()
      follow(page, troubles)
      await goTo(page, console.link)
      await page.waitForURL(OVERVIEW)
      return { page, origin: `http://127.0.0.1:${console.port}`, console }
    }
    const { page, origin, console } = await logIn()
    return {
      cluster,
      page,
      origin,
      troubles,
      openAs: async (user, path) => {
        const other = await logIn(user)
        await goTo(other.page, `${other.origin}/ui/c/local${path}`)
        return other.page
      },
      open: (path) => goTo(page, `${origin}/ui/c/local${path}`),
      newLink: () => console.link,
      dropConnections: () => console.sockets.forEach((socket) => void socket.destroy()),
      violations: (theme) => violationsOf(page, theme),
      [Symbol.asyncDispose]: () => closing.disposeAsync(),
    }
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
}

interface Around {
  readonly cluster: TestCluster
  readonly closing: AsyncDisposableStack
  readonly pods: FakePods | undefined
  readonly clock: Clock
}

async function openConsole({ cluster, closing, pods, clock }: Around, as?: string): Promise<OpenConsole> {
  const readFile = (): Promise<string> => Promise.resolve(cluster.kubeconfig)
  const config = await userConfig('kubeconfig', {}, { env: {}, cwd: '/', readFile })
  const user = { ...config.user, ...(as !== undefined && { as }) }
  const connection = await openConnection(
    { ...config, user },
    {
      clock: realClock,
      env: {},
      readFile,
      writeFile: () => Promise.resolve(),
      stdinUse: 'used by no terminal',
      onError: () => undefined,
    },
  )
  closing.defer(() => connection.close())
  const stream = { write: (_: string, done: () => void) => done() }
  const sockets = new Set<Duplex>()
  const console = await openConsolePort({
    clock,
    random: secureRandom,
    log: createLog({ clock: realClock, stream, errorStream: stream }).logger,
    port: 0,
    target: {
      client: {
        request: (request) => connection.transport.request(request),
        async upgrade(request) {
          if (pods !== undefined && String(request.url).endsWith('/portforward')) return pods.upgrade(request)
          const result = await connection.upgrade(request)
          if (result.isUpgraded) sockets.add(result.socket)
          return result
        },
      },
      server: connection.server,
    },
    displayName: 'local',
    version: '1.2.3',
    user: () => Promise.resolve(USER),
    newLinkCommand: 'hyperkube status',
    onLink: () => Promise.resolve(),
  })
  closing.defer(() => console.close())
  return Object.assign(console, { sockets })
}

export async function launch(closing: AsyncDisposableStack): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    // Chromium does not run as root otherwise.
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  })
  closing.defer(() => browser.close())
  return browser
}

export function follow(page: Page, troubles: string[]): void {
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('pageerror', (error) => troubles.push(`error: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    // Refusals of the API server, and a server that is away, are part of the tests.
    if (message.type() === 'error' && !NETWORK_FAILURE.test(text)) troubles.push(`console: ${text}`)
  })
}

/** Loads a page. Chromium breaks connections when a network interface of the machine comes or goes. */
export async function goTo(page: Page, url: string): Promise<void> {
  await page.goto(url).catch((error: Error) => {
    if (!error.message.includes('ERR_NETWORK_CHANGED')) throw error
    return page.goto(url)
  })
}

const NARROW = 320

/** Asserts that the page fits a window of 320 pixels, as after a zoom of 400 %. Parts of it draw again for the new width. */
export async function checkFitsNarrowScreen(page: Page): Promise<void> {
  const before = page.viewportSize()
  await page.setViewportSize({ width: NARROW, height: 800 })
  await eventually(
    () => page.evaluate<number>('document.documentElement.scrollWidth'),
    (width) => width === NARROW,
  )
  if (before !== null) await page.setViewportSize(before)
}

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

export async function violationsOf(page: Page, theme: 'light' | 'dark'): Promise<readonly string[]> {
  await page.emulateMedia({ colorScheme: theme })
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  await page.evaluate(readFileSync(axe, 'utf8'))
  const { violations } = await page.evaluate<AxeResult>('axe.run()')
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 300) ?? ''}`)
}
