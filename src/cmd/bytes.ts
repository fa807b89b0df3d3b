/** Formats sizes in bytes for people, such as `1.5 GiB`. */

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${step === 0 ? bytes : (bytes / 1024 ** step).toFixed(1)} ${units[step]}`
}
