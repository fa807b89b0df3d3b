/**
 * Reads and completes the cloud settings of a machine: its node name, and missing values of the Azure configuration.
 */
import { repairCloudRoutes } from './adapters.ts'
import { CrashError } from './outcome.ts'
import type { Worker } from './worker.ts'

const METADATA_MS = 10_000
const AZURE_CLI_MS = 300_000
const METADATA = 'http://169.254.169.254'
const AZURE_CLI = 'https://aka.ms/installazurecliwindows'
const AZURE_SIGNER = 'O=Microsoft Corporation'
const AZURE_INSTANCE = `${METADATA}/metadata/instance/compute?api-version=2017-08-01`

interface NameSource {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** Clouds whose load balancers identify nodes by the cloud's name. */
const NAMES: Readonly<Record<string, NameSource>> = {
  aws: { url: `${METADATA}/latest/meta-data/hostname`, headers: {} },
  gce: { url: `${METADATA}/computeMetadata/v1/instance/hostname`, headers: { 'Metadata-Flavor': 'Google' } },
}

/** The name for registration; undefined if the cloud does not determine it. */
export async function cloudNodeName(worker: Worker): Promise<string | undefined> {
  const source = NAMES[worker.settings.cloudProvider ?? '']
  if (source === undefined) return undefined
  await repairCloudRoutes(worker)
  const body = await worker.host.web.get(source.url, source.headers, METADATA_MS)
  return body.trim().toLowerCase()
}

/** Azure's command line, which completes the configuration, is installed if missing. */
export async function installCloudTools({ host, layout, settings }: Worker): Promise<void> {
  if (settings.cloudProvider !== 'azure' || host.system !== 'windows' || (await host.files.exists(layout.azureCli)))
    return
  const installer = 'C:\\etc\\rancher\\azure-cli.msi'
  try {
    await host.files.download(AZURE_CLI, installer, AZURE_CLI_MS)
    // The URL serves the latest installer, so there is no digest to compare with.
    const signer = await host.files.signer(installer)
    if (!signer?.split(', ').includes(AZURE_SIGNER)) {
      await host.files.remove(installer)
      throw new Error(`the installer is signed by ${signer ?? 'an unknown signer'}, not by ${AZURE_SIGNER}`)
    }
    await host.processes.output('msiexec.exe', ['/quiet', '/norestart', '/i', installer])
  } catch (error) {
    throw new CrashError(`Azure's command line cannot be installed: ${String(error)}`)
  }
}

const AZURE_SECRETS = ['aadClientId', 'aadClientSecret', 'tenantId'] as const

interface AzureCompute {
  readonly resourceGroupName?: string
  readonly subscriptionId?: string
  readonly location?: string
  readonly name?: string
}

interface AzureNetwork {
  readonly subnetId?: string
  readonly securityGroupId?: string
}

/** Adds all available values; keeps the given configuration if some are missing. */
export async function completeCloudConfig(worker: Worker, given: string): Promise<string> {
  if (worker.settings.cloudProvider !== 'azure') return given
  const config = JSON.parse(given) as Record<string, unknown>
  const missing = AZURE_SECRETS.filter((key) => config[key] === undefined || config[key] === '')
  if (missing.length > 0) throw new CrashError(`The cloud configuration for Azure lacks ${missing.join(', ')}`)
  try {
    return JSON.stringify({ ...config, ...(await azureDetails(worker, config)) })
  } catch (error) {
    worker.host.say(`keeping the given cloud configuration: ${String(error)}`)
    return given
  }
}

async function azureDetails(worker: Worker, config: Readonly<Record<string, unknown>>): Promise<object> {
  const { host, layout } = worker
  const text = await host.web.get(AZURE_INSTANCE, { Metadata: 'true' }, METADATA_MS)
  const { resourceGroupName, subscriptionId, location, name } = JSON.parse(text) as AzureCompute
  const az = (...args: readonly string[]): Promise<string> => host.processes.output(layout.azureCli, args)
  await az('cloud', 'set', '--name', textOf(config['cloud']) || 'AzureCloud')
  await azureLogin(worker, config, az)
  const inGroup = ['--subscription', must(subscriptionId), '-g', must(resourceGroupName)]
  const query = '{subnetId: ipConfigurations[0].subnet.id, securityGroupId: networkSecurityGroup.id}'
  const nic = (
    await az('vm', 'nic', 'list', ...inGroup, '--vm-name', must(name), '--query', '[0].id', '-o', 'tsv')
  ).trim()
  const network = JSON.parse(
    await az('network', 'nic', 'show', '--ids', nic, '--query', query, '-o', 'json'),
  ) as AzureNetwork
  const subnet = must(network.subnetId).split('/')
  return {
    subscriptionId,
    location: must(location),
    resourceGroup: resourceGroupName,
    vnetResourceGroup: must(partAfter(subnet, 'resourceGroups')),
    vnetName: must(partAfter(subnet, 'virtualNetworks')),
    subnetName: must(partAfter(subnet, 'subnets')),
    securityGroupName: must(network.securityGroupId).split('/').at(-1),
    useInstanceMetadata: true,
  }
}

/** The password is in a file, because process arguments are visible to other users. */
async function azureLogin(
  { host }: Worker,
  config: Readonly<Record<string, unknown>>,
  az: (...args: readonly string[]) => Promise<string>,
): Promise<void> {
  const file = host.system === 'windows' ? 'C:\\etc\\rancher\\azure-password' : '/etc/kubernetes/azure-password'
  await host.files.write(file, textOf(config['aadClientSecret']))
  try {
    const who = ['-u', textOf(config['aadClientId']), '--tenant', textOf(config['tenantId'])]
    await az('login', '--service-principal', ...who, '-p', `@${file}`)
  } finally {
    await host.files.remove(file)
  }
}

function partAfter(parts: readonly string[], name: string): string | undefined {
  const at = parts.indexOf(name)
  return at < 0 ? undefined : parts[at + 1]
}

function must(text: string | undefined): string {
  if (text === undefined || text === '') throw new Error('Azure did not provide all values')
  return text
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
