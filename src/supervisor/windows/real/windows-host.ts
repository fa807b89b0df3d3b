/** Implements the host interface on Windows: files and processes through Node, everything else through PowerShell. */
import { execFile, spawn } from 'node:child_process'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { win32 } from 'node:path'
import { promisify } from 'node:util'

import type { Clock } from '#lib/clock.ts'
import type { HnsAnswer, HnsCall } from '#lib/hns/hns.ts'
import type { HttpClient } from '#lib/http/client.ts'

import { hostFiles } from '../../host-files.ts'
import type { Adapter, HostFiles, HostNetwork, HostProcesses, OutputOptions } from '../../host.ts'
import { windowsLayout } from '../../layout.ts'
import type { ProcessName } from '../../process-names.ts'
import { hnsPodNetworks } from '../hns.ts'
import type { HostFirewall, HostServices, ServicePlan, WindowsHost } from '../windows-host.ts'
import { type PowerShell, PowerShellError, quoteArgument, runPowerShell } from './powershell.ts'
import { WRAPPER_SOURCE } from './scripts.ts'

export interface WindowsHostOptions {
  readonly clock: Clock
  readonly http: Pick<HttpClient, 'request'>
  readonly say: (text: string) => void
  readonly ended: (name: ProcessName) => void
  /** The host name by default. */
  readonly shell?: PowerShell
}

const MAX_BODY = 16 << 20

export function windowsHost({ clock, http, say, ended, shell = runPowerShell }: WindowsHostOptions): WindowsHost {
  const hns: HnsCall = async (method, path, body) => {
    const text = await shell('hns', { method, path, body: body === undefined ? '' : JSON.stringify(body) })
    return JSON.parse(text) as HnsAnswer
  }
  const ofMachine = async (name: string): Promise<string | undefined> =>
    (JSON.parse((await shell('variable-get', { name })) || 'null') as string | null) ?? undefined
  return {
    system: 'windows',
    layout: windowsLayout,
    clock,
    say,
    machineName: hostname().toLowerCase(),
    async isElevated() {
      const text = await shell('elevated', {})
      if (text === '') throw new PowerShellError('powershell.exe does not respond: PowerShell 5 or later is required')
      return (JSON.parse(text) as unknown) === true
    },
    files: windowsFiles(shell),
    processes: windowsProcesses(shell, ended),
    environment: {
      get: async (name) => process.env[name] ?? (await ofMachine(name)),
      ofMachine,
      set: async (name, value) => void (await shell('variable-set', { name, value })),
      // Windows treats an empty value as none.
      remove: async (name) => void (await shell('variable-set', { name, value: '' })),
    },
    network: windowsNetwork(shell, hns),
    hns,
    web: {
      async get(url, headers, timeoutMs) {
        const answer = await http.request({ url, headers, timeoutMs })
        if (answer.status >= 300) throw new Error(`${url} answered ${answer.status}`)
        return answer.text(MAX_BODY)
      },
    },
    services: windowsServices(shell),
    firewall: windowsFirewall(shell),
  }
}

function windowsFiles(shell: PowerShell): HostFiles {
  const files = hostFiles(win32.dirname)
  return {
    ...files,
    async empty(folder) {
      const names = await readdir(folder).catch(() => [])
      for (const name of names) await rm(win32.join(folder, name), { recursive: true, force: true })
    },
    // Follows redirects, uses the machine's proxy settings and trusted authorities.
    async download(url, path, timeoutMs) {
      await files.makeFolder(win32.dirname(path))
      // A redirect must not lead to a connection without TLS.
      const safety = ['--proto', '=https', '--proto-redir', '=https', '--tlsv1.2']
      const limits = [...safety, '--max-time', String(Math.ceil(timeoutMs / 1000)), '--retry', '3']
      await outputOf('curl.exe', ['--fail', '--silent', '--show-error', '--location', ...limits, '--output', path, url])
    },
    signer: async (path) =>
      (JSON.parse((await shell('file-signer', { path })) || 'null') as string | null) ?? undefined,
  }
}

async function outputOf(program: string, args: readonly string[], options: OutputOptions = {}): Promise<string> {
  const running = promisify(execFile)(program, [...args], {
    env: { ...process.env, ...options.env },
    windowsHide: true,
  })
  // The process may end without reading its input.
  running.child.stdin?.on('error', () => undefined).end(options.input ?? '')
  return (await running).stdout
}

function windowsProcesses(shell: PowerShell, ended: (name: ProcessName) => void): HostProcesses {
  const find = async (name: ProcessName): Promise<number[]> =>
    JSON.parse((await shell('process-find', { name })) || '[]') as number[]
  return {
    find,
    async launch({ name, args, env, errorsTo }) {
      const log = errorsTo === undefined ? undefined : await openLog(errorsTo)
      try {
        const stdio: ['ignore', 'ignore', 'ignore' | number] = ['ignore', 'ignore', log?.fd ?? 'ignore']
        const options = { detached: true, stdio, env: { ...process.env, ...env }, windowsHide: true }
        const child = spawn(windowsLayout.program(name), args, options)
        child.on('error', () => ended(name))
        child.on('exit', () => ended(name))
        child.unref()
        return child.pid ?? 0
      } finally {
        await log?.close()
      }
    },
    isAlive: async (pid) => isAlive(pid),
    kill: async (name) => void (await shell('process-kill', { name })),
    output: outputOf,
  }
}

async function openLog(path: string): ReturnType<typeof open> {
  await mkdir(win32.dirname(path), { recursive: true })
  return open(path, 'a')
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}

export interface WindowsAdapter extends Adapter {
  readonly mtu: number
}

export async function windowsAdapters(shell: PowerShell = runPowerShell): Promise<WindowsAdapter[]> {
  const found = JSON.parse((await shell('adapters', {})) || '[]') as (WindowsAdapter & { gateway: string | null })[]
  return found.map(({ gateway, ...adapter }) => ({ ...adapter, gateway: gateway ?? undefined }))
}

function windowsNetwork(shell: PowerShell, hns: HnsCall): HostNetwork {
  return {
    adapters: () => windowsAdapters(shell),
    addRoute: async (route) => void (await shell('add-route', route)),
    pods: hnsPodNetworks(hns),
    restartProxy: async () => void (await outputOf('docker', ['restart', 'nginx-proxy'])),
  }
}

/**
 * The input file of a service wrapper: program, log, command line, then variables. Values must not contain line breaks.
 */
export function wrapperLines({ program, args, env, logFile }: ServicePlan): string[] {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const lines = [program, logFile, args.map(quoteArgument).join(' '), ...variables]
  const broken = lines.find((line) => /[\r\n]/.test(line))
  if (broken !== undefined) throw new Error(`${JSON.stringify(broken)} does not fit into one line`)
  return lines
}

function windowsServices(shell: PowerShell): HostServices {
  return {
    async state(name) {
      const state = JSON.parse((await shell('service-state', { name })) || 'null') as string | null
      if (state === null) return undefined
      return state === 'Running' ? 'running' : 'stopped'
    },
    async install(plan) {
      const { name, description, wrapper } = plan
      const input = { name, description, wrapper, source: WRAPPER_SOURCE, lines: wrapperLines(plan) }
      await shell('service-install', input)
    },
    start: async (name) => void (await shell('service-start', { name })),
    stop: async (name) => void (await shell('service-stop', { name })),
    remove: async (name) => void (await shell('service-remove', { name })),
  }
}

function windowsFirewall(shell: PowerShell): HostFirewall {
  return {
    isAllowed: async (name) => (JSON.parse(await shell('firewall-find', { name })) as unknown) === true,
    allow: async (rule) => void (await shell('firewall-allow', rule)),
    remove: async (name) => void (await shell('firewall-remove', { name })),
  }
}
