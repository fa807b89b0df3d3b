/** The theme of the console: dark, light, or that of the system. */
import { signal, type Signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'hyperkube-theme'
const THEMES: readonly Theme[] = ['system', 'light', 'dark']

export const theme: Signal<Theme> = signal(readTheme())

function readTheme(): Theme {
  const stored = localStorage.getItem(KEY)
  return THEMES.find((one) => one === stored) ?? 'system'
}

export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme.value
}

/** Switches from system to light to dark. */
export function switchTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system'
  localStorage.setItem(KEY, theme.value)
  applyTheme()
}
