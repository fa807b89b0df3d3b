/** A tab of Chromium for measurements: memory and processor time of its renderer processes. */
import { readdirSync, readFileSync } from 'node:fs'

import { chromium, type Page } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'
const TICK_MS = 10

export interface Tab extends AsyncDisposable {
  readonly page: Page
  /** Of the largest renderer process: what it shares with no other process, and all that is in memory. */
  memory(): Memory
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
    memory: () => renderers().reduce((most, one) => (one.residentMb > most.residentMb ? one : most), NO_MEMORY),
    cpuMs: () => renderers().reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

export interface Memory {
  readonly privateMb: number
  readonly residentMb: number
}

const NO_MEMORY: Memory = { privateMb: 0, residentMb: 0 }

interface Renderer extends Memory {
  readonly cpuMs: number
}

/** Those of any Chromium on this machine: run no other one beside the bench. */
function renderers(): readonly Renderer[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')) return []
        const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
        const mb = (name: string): number =>
          Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(memory)?.[1] ?? 0) / 1000
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
        const privateMb = mb('Private_Dirty') + mb('Private_Clean')
        return [{ privateMb, residentMb: mb('Rss'), cpuMs: (Number(stat[11]) + Number(stat[12])) * TICK_MS }]
      } catch {
        // It has ended.
        return []
      }
    })
}
