/** A tab of Chromium for measurements: memory and processor time of its renderer processes. */
import { readdirSync, readFileSync } from 'node:fs'

import { chromium, type Page } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'
const TICK_MS = 10

export interface Tab extends AsyncDisposable {
  readonly page: Page
  /** Of the largest renderer process. */
  residentMb(): number
  /** Of all renderer processes. */
  cpuMs(): number
}

export async function openTab(): Promise<Tab> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    // Chromium does not run as root otherwise.
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  })
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  return {
    page,
    residentMb: () => Math.max(0, ...renderers().map(({ residentMb }) => residentMb)),
    cpuMs: () => renderers().reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

interface Renderer {
  readonly residentMb: number
  readonly cpuMs: number
}

/** Those of any Chromium on this machine: run no other one beside the bench. */
function renderers(): readonly Renderer[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')) return []
        const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
        return [{ residentMb: Number(kb) / 1000, cpuMs: (Number(stat[11]) + Number(stat[12])) * TICK_MS }]
      } catch {
        // It has ended.
        return []
      }
    })
}
