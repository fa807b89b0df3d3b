/** The versions that this program reports: its own, and that of the Kubernetes release it implements. */
import { readFileSync } from 'node:fs'

import type { Version } from '#lib/program.ts'

/** The implemented Kubernetes release. */
export const KUBERNETES_VERSION = 'v1.36.4'

/**
 * The version in `/version`, `--version` and kubectl. The suffix is build metadata, so version comparisons ignore it.
 */
export const GIT_VERSION: string = `${KUBERNETES_VERSION}+hyperkube1`

/** hyperkube's version, from package.json. */
export function hyperkubeVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}

/** Upstream's version.Info in its field order. Fields without a meaning here are empty. */
export interface VersionInfo {
  readonly major: string
  readonly minor: string
  readonly emulationMajor: string
  readonly emulationMinor: string
  readonly minCompatibilityMajor: string
  readonly minCompatibilityMinor: string
  readonly gitVersion: string
  readonly gitCommit: string
  readonly gitTreeState: string
  readonly buildDate: string
  readonly goVersion: string
  readonly compiler: string
  readonly platform: string
}

/** `gitVersion` is the server's version, to which its operator may add. */
export function versionInfo(gitVersion: string = GIT_VERSION): VersionInfo {
  const [major = '', minor = ''] = KUBERNETES_VERSION.slice(1).split('.')
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '',
    goVersion: `node${process.versions.node}`,
    compiler: 'v8',
    platform: `${GO_NAMES.get(process.platform) ?? process.platform}/${GO_NAMES.get(process.arch) ?? process.arch}`,
  }
}

/** Go's names of operating systems and architectures that differ from Node's. */
const GO_NAMES: ReadonlyMap<string, string> = new Map([
  ['win32', 'windows'],
  ['x64', 'amd64'],
  ['ia32', '386'],
])

/** The User-Agent of a program; the first word is the default field manager. */
export function userAgent(program: string): string {
  const { gitVersion, platform, gitCommit } = versionInfo()
  return `${program}/${gitVersion} (${platform}) kubernetes/${gitCommit.slice(0, 7) || 'unknown'}`
}

/** `--version` of the Kubernetes programs; raw is the Go literal of upstream's version.Info. */
export function kubernetesVersion(): Version {
  const fields = Object.entries(versionInfo()).map(([name, value]) => {
    return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}:"${value}"`
  })
  return { text: `Kubernetes ${GIT_VERSION}`, raw: `version.Info{${fields.join(', ')}}`, number: GIT_VERSION }
}
